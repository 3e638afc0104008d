"""The twenty-fourth set of live programs: each imitates one public report, even numbers only. Each search of reports
gave the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-24` alone. Each truth was written before gdbext looked,
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
    INIT,
    LOCKS,
    MISMATCH,
    MISSING,
    OPEN,
    ORDER,
    OTHER,
    RANKS,
    Live,
    _ranks,
)

_JOBS = {
    # NVIDIA-NeMo/RL#2226: trainers gather in a group of all ranks, and the inference worker waits for requests.
    # Doubtful: whether to blame who is not there or who chose the group
    "saves-with-inference-workers": ((MISSING, MISMATCH), (("2",), ("0", "1"))),
    # ACEsuit/mace#1216: it alone looks at the patience, and gathers the metrics; the others reduce gradients
    "patience-on-the-first": ((MISMATCH, MISSING), (("0",),)),
    # pytorch/pytorch#16304: a parameter got no gradient there, which is not reduced; the others reduce it
    "parameter-without-gradient": ((MISMATCH, MISSING), (("1",),)),
}
_MPI = {
    # glotzerlab/hoomd-blue#54: it does not come to the split of the world, as it reads a pipe that nobody writes to
    "rank-without-init": ((MISSING, INIT, MISMATCH), (("2",),)),
    # geoschem/GCHP#132: the weights for one grid after the other are made, which takes hours
    **dict.fromkeys(("regridding-weights",)),
}
R, E, T = "twenty_fourth_ranks", "twenty_fourth_engines", "twenty_fourth_threads"
M, N = "twenty_fourth_mpi", "twenty_fourth_native"
_CHILD = ("main", "child")
_BOTH = (("0", "1"), ("0",), ("1",))

TWENTY_FOURTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # exo-explore/exo#2048: two requests came in another order to each rank, and each kind has its own collective
    Live(R, "agrees-on-tasks", (MISMATCH, ORDER, MISSING), _BOTH, ("0", "1"), how="ranks", needs="torch"),
    # axolotl-ai-cloud/axolotl#2684: the first rank's workers tokenize long texts, the others are in a barrier
    Live(R, "tokenizes-long-texts", (HEALTHY,), roles=(*RANKS, "worker"), asked=RANKS, how="ranks", needs="torch"),
    # pytorch/pytorch#8371: a worker makes a whole batch, which is large, and all wait for the first one of an epoch
    Live(R, "first-batch-of-an-epoch", (HEALTHY,), roles=("0", "1", "worker0", "worker1"), asked=("0", "1"),
         how="ranks", needs="torch"),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # openucx/ucx#8594: both peers send what is too large for the other to take before it receives
    Live(M, "peers-exchange-first", (MISMATCH, OTHER, LOCKS, MISSING), _BOTH, ("0", "1"), how="mpirun",
         needs="mpi4py"),
    # Eyescale/Lunchbox#296: the word to stop was given between a thread's look at it and its wait
    Live(N, "stops-without-the-lock", (*EITHER, EXIT)),
    # dibyendumajumdar/simpledbm#12: a latch lets no more readers in once the detector waits for it, and a reader has
    # what the next one has a latch for
    Live(N, "deadlock-detector", EITHER),
    # firecracker-microvm/firecracker#6086: the handler of a signal logs, and its thread is in the log
    Live(N, "logs-a-broken-pipe", EITHER),
    # ggml-org/llama.cpp#828: when the context is full, half of it is computed again before the next token
    Live(N, "swaps-its-context", (HEALTHY,)),
    # ggml-org/llama.cpp#29258: more threads than cores, all of which wait by running at each barrier
    Live(N, "spins-at-barriers", (HEALTHY,)),
    # manticoresoftware/manticoresearch#1012: all documents are in, and the other indexes are made without a word
    Live(N, "secondary-indexes", (HEALTHY,)),
    # GafferHQ/gaffer#1686: it has the interpreter's lock and waits for threads, one of which calls Python
    Live(T, "scene-exists", (GIL,)),
    # google/tensorstore#206: a forked process waits for the pool that it has none of the threads of.
    # Doubtful: one could call it something else than a fork, as no lock was taken along
    Live(T, "reads-after-fork", (FORK, OTHER), (("child",),), _CHILD),
    # jjang-ai/vmlx#240: it has the cache's lock and waits for the worker, which wants that lock
    Live(T, "clones-a-snapshot", EITHER),
    # crewAIInc/crewAI#5788: the loop's thread waits for a coroutine of the same loop
    Live(T, "asks-from-a-flow", EITHER),
    # Lightning-AI/lit-llama#120: the first of the files takes ten minutes, and the bar is at 0 for so long
    Live(T, "converts-a-checkpoint", (HEALTHY,), needs="torch"),
    # huggingface/tokenizers#1206: one text is a single long word, which one thread merges while the others wait
    Live(T, "merges-a-long-word", (HEALTHY,)),
    # verl-project/verl#7656: a placement group wants more processors than there are, and its readiness is waited for.
    # Doubtful: it could be said that it waits for resources, which is no hang; nobody of the job is to blame
    Live(E, "storage-units-without-room", (OTHER, MISSING, LOCKS, INIT), (), ("main", "runner"), needs="ray"),
    # sgl-project/sglang#36108: a transfer has failed there, which it keeps for itself.
    # Doubtful: the decode worker would give up after 300 s
    Live(E, "prefill-fails-alone", (MISSING, OTHER, LOCKS), (("prefill",), ("prefill", "decode")),
         ("main", "prefill", "decode"), needs="zmq"),
    # OpenRLHF/OpenRLHF#1262: an error between the two words to the signal left it at the first; who wants to
    # generate waits, and so does the next update. Doubtful: whom to blame
    Live(E, "signal-of-updates", (OTHER, LOCKS, MISSING), (("trainer",), ("signal",), ("trainer", "generator")),
         ("main", "trainer", "generator", "signal"), needs="ray"),
    # exo-explore/exo#1804: the instance whose runner is dead has the fewest tasks and gets the next one; an event loop
    # at rest natively. Doubtful: whether to blame who chose it or who has not done it
    Live(E, "routes-to-dead-runners", (OTHER, MISSING, LOCKS, OPEN), (("main",), ("a",), ("main", "a")),
         ("main", "a", "b")),
    # wandb/wandb#3280: the thread that would answer has ended by sys.exit, and its process lives
    Live(E, "service-thread-exits", (OTHER, MISSING, LOCKS), (("service",), ("main", "service")),
         ("main", "service")),
    # ray-project/ray#44644: a request was cancelled before its body came, which its handler waits for with the only
    # slot. Doubtful: whether to blame who waits or who did not tell it; event loops at rest natively
    Live(E, "body-of-a-cancelled-request", (OTHER, LOCKS, MISSING, OPEN),
         (("replica",), ("main", "replica"), ("main",)), ("main", "replica")),
    # huggingface/text-generation-inference#1186: the bar of a download fills a pipe that is read after its end
    Live(E, "progress-bar-in-a-pipe", EITHER, (("main",), ("download",), ("main", "download")),
         ("main", "download"), ("main",), needs="tqdm"),
    # ahwurm/localharness#62: a request waits for a file lock by looking, while another process generates with it
    Live(E, "waits-for-the-inference-lock", (HEALTHY,), roles=("main", "other")),
    # wandb/wandb#4366: the run is over, and its last lines are sent again and again, two hours long, to a server that
    # is busy. Doubtful: nothing comes of it
    Live(E, "streams-with-retries", (HEALTHY,), roles=("main", "internal", "server"), asked=("main", "internal")),
)  # fmt: skip

TWENTY_FOURTH_BY_NAME: Dict[str, Live] = {row.id: row for row in TWENTY_FOURTH}
