"""The thirty-third set of live programs: each imitates one public report, numbers that four divides only. Each search
of reports gave the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-33` alone. Each truth was written before gdbext looked,
and who wrote them did not know the rules. Each program names its report.
"""

from __future__ import annotations

from typing import Dict, Tuple

from tests.inferiors.live.second_table import EITHER
from tests.inferiors.live.table import (
    FORK,
    GIL,
    HEALTHY,
    INIT,
    MISMATCH,
    MISSING,
    OPEN,
    ORDER,
    Live,
    _ranks,
)

_JOBS = {
    # vllm-project/vllm#56956: the first stage waits for the tokens that the last one draws, before it sends what the
    # stages in between need for that
    "waits-for-tokens-first": ((ORDER, MISMATCH, MISSING), (("0",),)),
    # pytorch/pytorch#114304: the parts of a checkpoint have collectives of their own, and one rank goes through the
    # parts in another order. All are of one group
    "goes-through-its-parts": ((MISMATCH, ORDER), (("1",),)),
    # deepqmc/deepqmc#248: each rank looks at its own buffer for whether to write a last checkpoint, for which all are
    # gathered. One has lost its buffer, and is at the end already
    "closes-its-store": ((MISMATCH, MISSING), (("2",),)),
    # dmlc/dgl#4108: the port of the master is drawn for each host; one rank asks for the master where nobody listens
    "draws-a-port-for-each": ((INIT, MISSING), (("2",),)),
    # bigscience-workshop/Megatron-DeepSpeed#48: the first rank merges the files of all ranks, for long
    # verl-project/verl#668: each shard of the weights takes ten minutes to come
    **dict.fromkeys(("merges-the-files-of-all", "loads-shards-from-afar")),
}
_MPI = {
    # scafacos/scafacos#36: the parameters are wrong, and the first rank alone, which tunes, returns with an error; the
    # others wait for what it has tuned
    "tunes-on-the-first": ((MISMATCH, MISSING), (("0",),)),
    # open-mpi/ompi#6688: who wants the lock of another rank does not look after its own, which that one wants.
    # Doubtful: whom to blame, and the first word
    "asks-for-the-other-lock": ((MISMATCH, *EITHER, MISSING), (("0", "1"), ("0",), ("1",))),
    # ComputationalRadiationPhysics/picongpu#5060: it has a task left, which would send a border to its neighbour, and
    # goes into a reduction of all; its neighbour waits for the border before that
    "leaves-a-task-behind": ((MISMATCH, MISSING), (("0",),)),
    # fmihpc/vlasiator#332: many small files are written, each of them slowly
    **dict.fromkeys(("writes-small-files",)),
}
R, E, T = "thirty_third_ranks", "thirty_third_engines", "thirty_third_threads"
M, N = "thirty_third_mpi", "thirty_third_native"
_SERVER = ("main", "server")

THIRTY_THIRD: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # amule-org/amule#1096: with the lock for reading it reads once more, and a writer has come in between
    Live(N, "reads-inside-a-read", EITHER),
    # agency-library/agency#108: who wakes in a barrier looks at the count, which is that of the next round already
    Live(N, "counts-down-again", EITHER),
    # sensu/sensu-go#1264: with the lock it sends on a channel without room, and who would receive wants the lock
    Live(N, "resets-its-monitor", EITHER),
    # foesmm/fomm#44: a large package is compressed by one thread, for hours
    Live(N, "packs-with-one-thread", (HEALTHY,)),
    # timescale/pg_textsearch#392: with the lock of its index for reading it evicts the largest cache, which is its own
    # and wants that lock for writing
    Live(T, "evicts-its-own-cache", EITHER),
    # flyteorg/flyte-sdk#1472: it waits in the thread of the loop for a task that has no service any more; what would
    # say so is another task of the loop
    Live(T, "calls-a-task-from-the-loop", EITHER),
    # rust-threadpool/rust-threadpool#56: the jobs meet, and there are more of them than workers
    Live(T, "meets-with-few-workers", EITHER),
    # utilitywarehouse/wiresteward#380: it sends the word to stop, without room for it, to a thread that has ended
    Live(T, "stops-a-health-check", EITHER),
    # rapidsai/rapidsmpf#188: with the lock of the interpreter it waits for a thread in C++, which calls one in Python
    Live(T, "waits-for-progress", (GIL,)),
    # apache/solr#4236: a request has failed and is sent again by the thread that gives back the permits, and there is
    # none left
    Live(T, "sends-again-on-failure", EITHER),
    # akitaonrails/ai-memory#776: a migration rewrites each row of a large table, without a word
    Live(T, "rewrites-each-row", (HEALTHY,)),
    # cnapy-org/CNApy#104: a long computation, and nothing says that it goes on
    Live(T, "computes-its-modes", (HEALTHY,)),
    # danielgerlag/workflow-core#1352: what is being worked on is taken from the queue and put back again and again
    Live(T, "puts-it-back", (HEALTHY,)),
    # facebookresearch/CompilerGym#264: there were too many requests, and it waits for longer each time
    Live(T, "backs-off", (HEALTHY,)),
    # status-im/nim-json-rpc#196: the server could not read the request, and its error has no number; the client does
    # not know whose it is, and waits for its answer. As an event loop at rest it may be left open. Doubtful: whom to
    # blame, as the server has said what it could
    Live(E, "answers-without-a-number", (*EITHER, MISSING, OPEN), (("main",), ("server",), _SERVER), _SERVER),
    # HKUDS/OpenHarness#204: what the search says on its error output is not read, and that pipe is full
    Live(E, "searches-without-rights", (*EITHER, MISSING), (("main",), ("search",), ("main", "search")),
         ("main", "search"), ("main",)),
    # SFTtech/videoscreen#4: the server reads a line of one client, which sends none; another one waits for its turn
    Live(E, "one-client-is-silent", (*EITHER, MISSING),
         (("server",), ("silent",), ("server", "silent"), ("main",)), ("main", "server", "silent")),
    # grpc/grpc#22624: forked while a thread has the lock of the pollers, which the child wants before all else
    Live(E, "forks-while-it-polls", (FORK,), (("child",),), ("main", "child")),
    # u-root/u-root#576: the commands are compiled at the start, one after the other, and nothing says so
    Live(E, "compiles-its-commands", (HEALTHY,), roles=("main", "builder")),
    # ethereum/go-ethereum#14420: blocks come slowly from a peer, for days
    Live(E, "imports-from-a-peer", (HEALTHY,), roles=("main", "peer")),
)  # fmt: skip

THIRTY_THIRD_BY_NAME: Dict[str, Live] = {row.id: row for row in THIRTY_THIRD}
