"""The thirty-first set of live programs: each imitates one public report, numbers that four divides only. Each search
of reports gave the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-31` alone. Each truth was written before gdbext looked,
and who wrote them did not know the rules. Each program names its report.
"""

from __future__ import annotations

from typing import Dict, Tuple

from tests.inferiors.live.second_table import EITHER
from tests.inferiors.live.table import (
    EXIT,
    GIL,
    HEALTHY,
    INIT,
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
    # huggingface/sentence-transformers#3348: there are duplicates among its samples, so that its sampler gives a batch
    # less than it says. It goes on to evaluate, the others reduce gradients
    "leaves-out-duplicates": ((MISMATCH, MISSING), (("1",),)),
    # ROCm/rccl#1600: two threads use two communicators, and all of that goes to one stream in the order in which it
    # comes; on one rank that is another order
    "launches-by-two-threads": ((ORDER, MISMATCH), (("1",),)),
    # sql-machine-learning/elasticdl#2264: it has the plan for two hosts, and a new one for three was made before it
    # came to use it; the others meet by that
    "meets-by-an-old-plan": ((INIT, MISSING), (("1",),)),
    # NVIDIA/nccl#708: a process prepares the dataset, and the others are in a barrier for longer than half an hour
    # facebookresearch/maskrcnn-benchmark#172: the first process has much more images to go through than the others
    **dict.fromkeys(("prepares-the-dataset-first", "has-more-images-than-others")),
}
_MPI = {
    # mpi4py/mpi4py#784: a thread duplicates the communicator for a first pickled reduction, with the lock of the
    # interpreter; the main thread, which would bring the first rank on, wants that lock. Doubtful: what the first rank
    # is late for
    "first-pickled-reduction": ((GIL,), (("1",),)),
    # ComputationalRadiationPhysics/libSplash#148: it has nothing to read, and leaves out a collective read
    "reads-nothing": ((MISMATCH, MISSING), (("2",),)),
    # keichi/mpEDM#64: a message was left of the first run, and the second one takes it for one of its own; a worker is
    # told to stop twice and another one never. Doubtful: whom to blame, the master or who waits for its word
    "two-runs-of-a-master": ((MISMATCH, MISSING, OTHER), (("0",), ("1",), ("0", "1"))),
    # ALPSCore/ALPSCore#116: how far all are is added up after each update, and updates differ much in length
    **dict.fromkeys(("updates-of-uneven-length",)),
}
R, E, T = "thirty_first_ranks", "thirty_first_engines", "thirty_first_threads"
M, N = "thirty_first_mpi", "thirty_first_native"
_SERVER = ("main", "server")

THIRTY_FIRST: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # pytorch/pytorch#172668: each of two ranks has two stages, and both send before they receive
    Live(R, "interleaves-its-stages", (MISMATCH, OTHER, LOCKS), (("0", "1"), ("0",), ("1",)), ("0", "1"),
         how="ranks", needs="torch"),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # caetanosauer/zero#28: who wakes the worker while it is busy waits for one round more than was asked for
    Live(N, "waits-for-a-round", EITHER),
    # ng-log/ng-log#40: a second failure, while the first one is dumped; its handler waits for the dump to be done,
    # which is in the frame below it
    Live(N, "fails-while-it-dumps", EITHER),
    # kraison/vivace-graph#76: two threads read, and both want to write and wait for the other one to read no more
    Live(N, "upgrades-both-readers", (LOCKS, OTHER)),
    # google/or-tools#2012: a search for hours
    Live(N, "cuts-its-rolls", (HEALTHY,)),
    # pybind/pybind11#1556: called from a thread of Python, it makes a state of the thread of its own and wants the
    # lock of the interpreter that this thread has
    Live(T, "calls-back-from-a-thread", (GIL,)),
    # IsmaeelAkram/icloud-linux#20: told to end while it ends already, with the lock that the handler wants
    Live(T, "is-told-to-end-twice", (LOCKS, OTHER)),
    # finos/waltz#7588: a result is never closed, and each request keeps its connection; the pool is empty
    Live(T, "keeps-its-connections", EITHER),
    # rohanpm/more-executors#176: its thread would end with the executor, which lives until the interpreter has ended,
    # and that waits for the thread
    Live(T, "ends-before-its-executor", (EXIT, *EITHER)),
    # rohanpm/more-executors#80: it looks whether to end before it clears the event, and the word came in between
    Live(T, "clears-its-event", EITHER),
    # apache/paimon#9508: a task was refused by the pool, and its permit is not given back
    Live(T, "loses-its-permits", EITHER),
    # CodeAbra/iai-personal-memory-engine#160: it waits for the handlers of all connections, one of which is idle and
    # stays. As an event loop at rest it may be left open
    Live(T, "drains-an-idle-client", (*EITHER, EXIT, OPEN)),
    # thunderbird/tbpro-add-on#980: a large file is hashed before it is sent, and nothing moves
    Live(T, "hashes-before-it-sends", (HEALTHY,)),
    # Kitware/CDash#3668: a migration makes an index over many rows
    Live(T, "migrates-its-index", (HEALTHY,)),
    # RoboJackets/robocup-software#1084: the loop is slower than what looks at it expects
    Live(T, "processing-is-late", (HEALTHY,)),
    # mozilla/sccache#232: those who ask have all tokens of the build, and the server wants one for each of them
    Live(E, "wants-a-token-too", EITHER, (("main",), ("a", "b"), ("main", "a", "b"), ("a",), ("b",)),
         ("main", "a", "b")),
    # confluentinc/ducktape#140: a long tool has the end of the pipe of a short one, which is read to its end
    Live(E, "inherits-a-pipe", (*EITHER, MISSING), (("main",), ("tool",), ("main", "tool")), ("main", "tool"),
         ("main",)),
    # cakephp/cakephp#6776: the answer is read until the connection ends, and the server keeps it for the next request
    Live(E, "reads-until-the-end", (*EITHER, MISSING), (("main",), ("server",), _SERVER), _SERVER),
    # sidekiq/sidekiq#2984: who adds jobs has stopped, and the workers are idle
    Live(E, "jobs-are-not-added", (HEALTHY,), roles=("main", "broker")),
    # vllm-project/vllm#17676: the engine downloads its model, and the front end waits for it to start
    Live(E, "engine-downloads-its-model", (HEALTHY,), roles=("main", "engine", "hub")),
    # cawilliamson/ansible-gpdpocket#60: a kernel is compiled, and what that says is not shown
    Live(E, "compiles-without-a-word", (HEALTHY,), roles=("main", "build")),
)  # fmt: skip

THIRTY_FIRST_BY_NAME: Dict[str, Live] = {row.id: row for row in THIRTY_FIRST}
