"""The twenty-eighth set of live programs: each imitates one public report, even numbers only. Each search of reports
gave the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-28` alone. Each truth was written before gdbext looked,
and who wrote them did not know the rules. Each program names its report.
"""

from __future__ import annotations

from typing import Dict, Tuple

from tests.inferiors.live.second_table import EITHER
from tests.inferiors.live.table import (
    EXIT,
    FORK,
    GIL,
    HEALTHY,
    LOCKS,
    MISMATCH,
    MISSING,
    OPEN,
    OTHER,
    Live,
    _ranks,
)

_JOBS = {
    # dylanyunlon/Neuron_SP#154: a rank decides to skip the step of the optimizer, the others reduce and scatter in it
    "skips-a-step": ((MISMATCH, MISSING), (("1",),)),
    # meta-pytorch/torchrec#1014: it has fewer batches to validate, and is at the end; each batch is exchanged by all
    "validates-what-it-has": ((MISMATCH, MISSING), (("1",),)),
    # vllm-project/vllm#28224: without requests, a rank runs a batch that is none and agrees about it with all; the
    # others have ended theirs and wait for requests. Doubtful: whom to blame
    "runs-dummy-batches": ((MISMATCH, MISSING), (("2",), ("0", "1"))),
    # sgl-project/sglang#31478: of two equal tokens one rank takes the other one, so that it accepts more of the draft
    # and is done with the request, and the others are not
    "verifies-its-drafts": ((MISMATCH, MISSING), (("1",),)),
    # huggingface/datasets#2298: the first rank maps all samples, the others wait in a barrier for that
    **dict.fromkeys(("maps-on-the-first",)),
}
_MPI = {
    # rsmpi/rsmpi#144: each send is waited for as soon as it is begun, and nobody receives before it has sent
    "sends-its-packets": ((MISMATCH, OTHER, LOCKS, MISSING), (("0", "1", "2"), ("0",), ("1",), ("2",))),
    # h5py/h5py#1108: rows are written by all ranks together, and one of them has fewer rows
    "writes-its-rows": ((MISMATCH, MISSING), (("2",),)),
    # cms-sw/cmssw#50752: it has failed, and ends MPI on its way out, which waits for all; another waits for its data
    "ends-its-service": ((MISSING, EXIT), (("1",),)),
}
R, E, T = "twenty_eighth_ranks", "twenty_eighth_engines", "twenty_eighth_threads"
M, N = "twenty_eighth_mpi", "twenty_eighth_native"

TWENTY_EIGHTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # ScrollPrize/villa#1688: the workers are told to stop and woken up without the lock, and one of them was about to
    # sleep, and is joined
    Live(N, "stops-its-workers", EITHER),
    # DeFiCh/ain#368: two locks, taken in one order by one thread and in the other one by another
    Live(N, "connects-a-block", (LOCKS,)),
    # HardySimpson/zlog#62: forked while a thread writes to the log; the child has its lock as it was, and logs
    Live(N, "logs-in-the-child", (FORK, *EITHER), (("child",),), ("main", "child")),
    # JensRavens/Interstellar#68: an observer is removed by itself while it is told of a value, with the lock of both
    Live(N, "observes-until-five", EITHER),
    # userver-framework/userver#440: it stops when all handlers have ended, and one reads from a client that sends
    # nothing more and waits for an answer. Doubtful: whom to blame
    Live(N, "stops-with-a-stream", (*EITHER, MISSING), (("main",), ("client",), ("main", "client")),
         ("main", "client")),
    # tenstorrent/tt-mlir#3446: the optimizer of a compiler takes long, and says nothing
    Live(N, "lays-out-a-graph", (HEALTHY,)),
    # facebookresearch/TensorComprehensions#108: the tuner waits for a deep loop that takes long
    Live(N, "tunes-a-deep-loop", (HEALTHY,)),
    # pybind/pybind11#2093: it waits for the threads of a parallel loop with the interpreter's lock, which they want
    Live(T, "maps-in-parallel", (GIL,)),
    # aws/bedrock-agentcore-sdk-python#482: the thread of the loop puts into a full queue, as the client has gone and
    # nobody takes anything; the next request waits for that loop
    Live(T, "streams-an-answer", EITHER),
    # python/asyncio#270: who was woken up by the release was cancelled, and nobody else is woken up. As an event loop
    # at rest it may be left open
    Live(T, "limits-its-requests", (*EITHER, OPEN)),
    # zeromq/pyzmq#102: the context ends when all messages are sent, and nobody is there to take this one
    Live(T, "asks-and-leaves", (*EITHER, EXIT, MISSING), needs="zmq"),
    # sabnzbd/sabnzbd#3534: a second signal comes while the first one is handled, and the lock is held by that
    Live(T, "halts-once-more", (LOCKS,)),
    # benfred/py-spy#92: threads of a pool that have nothing to do, and a loop that waits for events
    Live(T, "has-idle-threads", (HEALTHY,)),
    # allenai/dolma#284: a pattern takes a minute for forty characters
    Live(T, "tags-paragraphs", (HEALTHY,)),
    # jcjohnson/torch-rnn#112: after a thousand steps the loss of all validation data is computed, which takes long
    Live(T, "validates-now-and-then", (HEALTHY,)),
    # Parsl/parsl#738: the pool writes its log to a pipe that nobody reads, and its results are waited for
    Live(E, "launches-a-pool", EITHER, (("main",), ("pool",), ("main", "pool")), ("main", "pool"), needs="zmq"),
    # abacusorg/abacusutils#150: a worker of a pool was killed, and its result is waited for. Only the cause counts
    Live(E, "prepares-slabs", (OTHER, MISSING, LOCKS)),
    # coralogix/protofetch#150: a lock of the cache was left by a process that was killed, and is waited for
    Live(E, "fetches-into-the-cache", (*EITHER, MISSING)),
    # transcranial/keras-js#12: the weights are downloaded slowly
    Live(E, "loads-its-weights", (HEALTHY,), roles=("main", "server")),
    # duosecurity/duo_api_csharp#8: the service has too many requests, and is asked again after a while
    Live(E, "asks-again-later", (HEALTHY,), roles=("main", "service")),
    # vllm-project/guidellm#1042: a worker that is busy has taken requests, which wait for it
    Live(E, "bursts-over-workers", (HEALTHY,), roles=("main", "one", "two")),
    # Dealogic/webpack-vsts-extension#84: a build that goes on watching its files for changes
    Live(E, "builds-and-watches", (HEALTHY,)),
)  # fmt: skip

TWENTY_EIGHTH_BY_NAME: Dict[str, Live] = {row.id: row for row in TWENTY_EIGHTH}
