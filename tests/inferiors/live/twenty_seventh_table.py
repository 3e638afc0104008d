"""The twenty-seventh set of live programs: each imitates one public report, even numbers only. Each search of reports
gave the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-27` alone. Each truth was written before gdbext looked,
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
    LOCKS,
    MISMATCH,
    MISSING,
    OTHER,
    Live,
    _ranks,
)

_JOBS = {
    # alan-turing-institute/autocast#386: the first rank alone saves once more, which ends in a barrier of all; the
    # others have taken it for the next one, and are a collective further
    "saves-once-more-at-the-end": ((MISMATCH, MISSING), (("0",),)),
    # lightseekorg/TorchSpec#126: it has left out a sample that has too few tokens, and with it a gather of all
    "leaves-out-short-samples": ((MISMATCH, MISSING), (("1",),)),
    # ray-project/ray#58229: one reports and waits for the reports of the others, which wait for it in the backward
    # pass. Doubtful: whom to blame
    "reports-a-checkpoint": ((MISMATCH, MISSING), (("0",), ("1", "2"))),
    # deepseek-ai/DeepEP#604: one has more tokens than its buffer holds and gathers the sizes of all, the others have
    # room and go on. Doubtful: whom to blame
    "grows-its-buffer": ((MISMATCH, MISSING), (("2",), ("0", "1"))),
    # huggingface/accelerate#314: a rank goes through a large file for an hour, the others wait in a reduction
    **dict.fromkeys(("offsets-of-all-lines",)),
}
_MPI = {
    # NVIDIA/cuDecomp#24: the first rank has begun a broadcast, which does not go on while it waits in the start of
    # another library for all ranks, outside of MPI. Doubtful: the name of it
    "shares-its-unique-id": ((MISSING, INIT, OTHER), (("0",),)),
    # Mantevo/miniMD#8: all ranks send their counts around before they receive, and a send may wait for the receive
    "sends-counts-around": ((MISMATCH, OTHER, LOCKS, MISSING), (("0", "1", "2"), ("0",), ("1",), ("2",))),
    # MFlowCode/MFC#1358: the first rank writes all of the state alone, the others wait for it
    **dict.fromkeys(("writes-the-boundaries",)),
}
R, E, T = "twenty_seventh_ranks", "twenty_seventh_engines", "twenty_seventh_threads"
M, N = "twenty_seventh_mpi", "twenty_seventh_native"
_WORKER = ("main", "worker")

TWENTY_SEVENTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # CppMicroServices/CppMicroServices#210: it has the lock of all threads and joins one that wants that lock
    Live(N, "stops-the-framework", EITHER),
    # dmtcp/dmtcp#690: forked while threads resume; the child has their count, and waits for threads that it has not
    Live(N, "forks-while-resuming", (FORK, *EITHER), (("child",),), ("main", "child")),
    # sheredom/subprocess.h#82: it waits for the end of a command, which writes into a full pipe that nobody reads
    Live(N, "joins-its-command", EITHER, (("main",), ("command",), ("main", "command")), ("main", "command"),
         ("main",)),
    # meganz/mingw-std-threads#20: who notifies waits until the count of waiters is less than none, by looking again
    Live(N, "notifies-one-of-them", EITHER),
    # futuregene/future-os#252: one has the lock of the home and wants that of the agent, and the other way round
    Live(N, "quits-when-confirmed", (LOCKS,)),
    # devnoname120/vhbb#22: a list is fetched over a slow connection, and nothing is shown
    Live(N, "starts-with-its-list", (HEALTHY,), roles=("main", "server")),
    # llvm/llvm-project#78394: passes over deep loops take three quarters of an hour
    Live(N, "hoists-out-of-loops", (HEALTHY,)),
    # GafferHQ/gaffer#3512: one has the interpreter's lock and wants that of the handlers, and the other way round
    Live(T, "pops-a-handler", (GIL,)),
    # cython/cython#2486: the main thread has the lock of imports and joins a thread that imports
    Live(T, "imports-in-a-thread", EITHER),
    # home-assistant/core#3658: the loop waits for what is to run in the same loop
    Live(T, "calls-a-method-for-threads", EITHER),
    # langchain-ai/langchain#10638: all threads of a pool wait for what the same threads should do
    Live(T, "shares-one-executor", EITHER),
    # OpenHFT/Chronicle-Threads#132: a loop that has almost nothing to do, and a monitor that says it is late
    Live(T, "monitors-an-idle-loop", (HEALTHY,)),
    # huggingface/transfer-learning-conv-ai#24: all texts are tokenized by one processor
    Live(T, "tokenizes-on-one-core", (HEALTHY,)),
    # brendangregg/FlameGraph#208: threads that wait for events, of which there are none
    Live(T, "selects-without-events", (HEALTHY,)),
    # python/cpython#116400: the end was told to who takes the results before the last of them; the worker cannot put
    # the rest into a full pipe, and is joined
    Live(E, "ends-its-queues", EITHER, (("main",), ("worker",), _WORKER), _WORKER),
    # Optibus/playback#44: the worker was killed, and its answer is waited for. Doubtful: whom to blame, as it is no
    # process any more, so that only the cause counts
    Live(E, "compares-playbacks", (OTHER, MISSING, LOCKS)),
    # ray-project/ray#1734: there are more actors than processors, and an answer of each of them is waited for.
    # Doubtful: whom to blame, so that only the cause counts
    Live(E, "ten-actors", (OTHER, LOCKS, MISSING), (), ("main", "a", "b"), needs="ray"),
    # JuliaLang/julia#50214: it waits for a file to be removed that an interrupted process has left
    Live(E, "precompiles-a-package", (*EITHER, MISSING)),
    # MonetDB/MonetDB-old#376: the answer has come, and the thread that would receive it was not started
    Live(E, "calls-a-remote-procedure", EITHER, (("main",), ("main", "server")), ("main", "server")),
    # netskopeoss/terraform-provider-netskope#108: it sleeps for as long as the service says, half an hour
    Live(E, "refreshes-a-resource", (HEALTHY,), roles=("main", "service")),
    # PostHog/duckgres#690: told to end, a worker takes nothing new and ends its queries first
    Live(E, "drains-before-it-ends", (HEALTHY,), roles=_WORKER),
    # ray-project/ray#8326: actors that take long to begin
    Live(E, "actors-begin-slowly", (HEALTHY,), roles=("main", "a", "b"), needs="ray"),
)  # fmt: skip

TWENTY_SEVENTH_BY_NAME: Dict[str, Live] = {row.id: row for row in TWENTY_SEVENTH}
