"""The twenty-ninth set of live programs: each imitates one public report, even numbers only. Each search of reports
gave the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-29` alone. Each truth was written before gdbext looked,
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
    ORDER,
    OTHER,
    Live,
    _ranks,
)

_JOBS = {
    # huggingface/trl#6862: its forward pass has failed, and it agrees about that with all; the others gather their
    # metrics, which comes before that
    "agrees-on-failures": ((MISMATCH, MISSING), (("1",),)),
    # NVIDIA/apex#18: gradients are reduced by their type, and a rank goes through the types in another order.
    # Doubtful: the first word, as each type has a group of its own here
    "reduces-by-type": ((ORDER, MISMATCH), (("1",),)),
    # speechbrain/speechbrain#2192: by its clock it is time to save, which ends in a barrier; the others train on
    "saves-by-the-clock": ((MISMATCH, MISSING), (("2",),)),
    # ByteDance-Seed/VeOmni#1176: a staged checkpoint is copied to a slow place by the first rank, for minutes
    **dict.fromkeys(("copies-its-staged-checkpoint",)),
}
_MPI = {
    # opencollab/arpack-ng#46: it has solved on a communicator of its own before, so that it leaves out what all do the
    # first time, a reduction among that
    "solves-on-a-part-first": ((MISMATCH, MISSING), (("2",),)),
    # pmodels/mpich#5604: a flag of the first rank, the one that aggregates, says to exchange in another way
    "writes-with-its-own-tuning": ((MISMATCH, MISSING), (("0",),)),
    # illinois-ceesd/mirgecom#202: the first rank makes and partitions the mesh alone, the others wait for their parts
    **dict.fromkeys(("partitions-the-mesh",)),
}
R, E, T = "twenty_ninth_ranks", "twenty_ninth_engines", "twenty_ninth_threads"
M, N = "twenty_ninth_mpi", "twenty_ninth_native"
_SERVER = ("main", "server")

TWENTY_NINTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # microsoft/CCF#628: both rings are full, and the one thread that reads each of them writes into the other one
    Live(N, "fills-both-rings", EITHER),
    # circonus-labs/libmtev#670: it reads and wants to read once more, and a writer waits in between
    Live(N, "reads-in-a-read", EITHER),
    # ultralytics/ultralytics#26085: forked while a thread registers what is done at the end; the child has the lock of
    # the C library for that as it was, and registers something too
    Live(N, "decodes-in-a-worker", (FORK, *EITHER), (("child",),), ("main", "child")),
    # TileDB-Inc/TileDB#1994: while it waits for a part of its task it works on another one, which wants its lock
    Live(N, "helps-while-it-waits", EITHER),
    # cooperative-computing-lab/cctools#1264: a scheduler without jobs looks for one all the time
    Live(N, "polls-for-jobs", (HEALTHY,)),
    # encero-systems/incan#276: the first run builds everything, and nothing is said about that
    Live(N, "builds-all-crates", (HEALTHY,), roles=("main", "compiler")),
    # Delgan/loguru#720: an object is finalised while a message is written, with the lock of that, and logs
    Live(T, "logs-in-a-finaliser", (LOCKS,)),
    # ceph/ceph#46302: it wants a lock with the interpreter's one, which the owner of that lock waits for
    Live(T, "reads-a-module-option", (GIL,)),
    # dbt-labs/dbt-core#5602: a worker has ended by an exception without saying that its node is done
    Live(T, "joins-its-job-queue", EITHER),
    # OpenMathLib/OpenBLAS#2362: the library is unloaded, with the loader's lock, and waits for its threads, one of
    # which wants that lock
    Live(T, "unloads-its-engine", (EXIT, *EITHER)),
    # tox-dev/filelock#586: a task has the lock of a path and wants it by another object. As an event loop at rest it
    # may be left open
    Live(T, "locks-a-path-twice", (*EITHER, OPEN)),
    # fbdesignpro/sweetviz#18: the associations of all pairs of columns, which are many
    Live(T, "pairs-all-columns", (HEALTHY,)),
    # nicoboss/nsz#86: all that was read is in the library that compresses, and the progress stands still
    Live(T, "compresses-what-was-read", (HEALTHY,)),
    # zeek/package-manager#198: it reads the errors to their end, and the tool writes into the other pipe, which is full
    Live(E, "reads-errors-first", EITHER, (("main",), ("tool",), ("main", "tool")), ("main", "tool"), ("main",)),
    # ShannonAI/service-streamer#94: a worker was killed with the lock of the queue of requests, which another one
    # wants. Only the cause counts, as the one to blame is no process any more
    Live(E, "takes-requests-in-turn", (OTHER, MISSING, LOCKS, OPEN), (), ("main", "two")),
    # zeromq/zmqpp#170: the reply was sent without the identity of who asked, and dropped. Doubtful: whom to blame, as
    # the server is ready for the next request
    Live(E, "replies-to-nobody", (*EITHER, MISSING), (("server",), ("main", "server")), _SERVER, needs="zmq"),
    # vllm-project/vllm#4412: the driver waits for the first stage before it starts the second one, and the first one
    # sends to the second one. Doubtful: whom to blame
    Live(E, "drives-stages-in-turn", (OTHER, LOCKS, MISSING, MISMATCH), (("main",), ("0",), ("main", "0")),
         ("main", "0", "1"), needs="torch"),
    # NVIDIA/TensorRT-LLM#12542: the block was gone when it should be sent, which was logged; it is waited for.
    # Doubtful: whom to blame, as the sender is ready for the next request
    Live(E, "sends-a-cache-block", (MISSING, *EITHER), (("prefill",),), ("main", "prefill", "decode")),
    # replicate/cog#756: a large output is sent before the word that it is done, and that word alone is waited for
    Live(E, "sends-a-large-output", EITHER, (("main",), ("predictor",), ("main", "predictor")), ("main", "predictor")),
    # unslothai/unsloth#9018: a voice model is downloaded, and no bytes are shown until it has come
    Live(E, "downloads-a-voice", (HEALTHY,), roles=("main", "hub")),
    # activeloopai/deeplake#1760: a large buffer is filled to be shuffled before there is a first batch
    Live(E, "fills-its-shuffle-buffer", (HEALTHY,), roles=("main", "worker"), needs="torch"),
    # pyinstaller/pyinstaller#9482: a test waits for its program to be built, which takes almost all of its time
    Live(E, "builds-before-it-runs", (HEALTHY,), roles=("main", "builder")),
    # lordmathis/llamactl#78: an instance is stopped when the requests that it has are done, and they go on
    Live(E, "stops-after-its-requests", (HEALTHY,), roles=("main", "instance")),
)  # fmt: skip

TWENTY_NINTH_BY_NAME: Dict[str, Live] = {row.id: row for row in TWENTY_NINTH}
