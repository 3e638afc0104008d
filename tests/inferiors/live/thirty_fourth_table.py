"""The thirty-fourth set of live programs: each imitates one public report, numbers that four divides with a rest of two
only. Each search of reports gave the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-34` alone. Each truth was written before gdbext looked,
and who wrote them did not know the rules. Each program names its report.
"""

from __future__ import annotations

from typing import Dict, Tuple

from tests.inferiors.live.second_table import EITHER
from tests.inferiors.live.table import (
    EXIT,
    FORK,
    HEALTHY,
    LOCKS,
    MISMATCH,
    MISSING,
    OPEN,
    OTHER,
    Live,
    _ranks,
)

_FOUR = ("0", "1", "2", "3")
_JOBS = {
    # pytorch/pytorch#77562: the loss is reduced to the first rank alone, and from what each rank has then one takes its
    # own loss for the best one and saves, for which all are needed; the others are in the next epoch
    "saves-its-best-loss": ((MISMATCH, MISSING), (("1",),)),
    # vllm-project/vllm#53578: ranks without a request leave out the forward of a dummy batch, and the one that has a
    # request exchanges tokens of experts with all of them
    "leaves-out-the-dummy-batch": ((MISSING, MISMATCH), (("1", "2"), ("1",), ("2",))),
    # sgl-project/sglang-omni#270: the first rank fails after it has broadcast a batch and before it broadcasts what
    # belongs to it, and the others wait for that. Its process lives on
    "fails-between-two-broadcasts": ((MISSING, MISMATCH), (("0",),)),
    # SpongebBob/Finetune-ChatGLM2-6B#6: the data are prepared for long before the first rank joins the others
    # OlaWod/FreeVC#34: all cores are busy, as the gradients go over the processors
    **dict.fromkeys(("tokenizes-before-it-joins", "reduces-by-its-processors")),
}
_MPI = {
    # cp2k/cp2k#4942: a rank without data does not set up the groups and datasets in the file, for which all are needed,
    # and closes it
    "stores-chunks-where-it-has-some": ((MISMATCH, MISSING), (("2",),)),
    # IPPL-framework/ippl#90: the tags of a periodic boundary start again after many messages, and who receives
    # calculates another tag than who sends: each rank waits for a message with a tag that nobody sends
    "starts-its-tags-again": ((MISMATCH, MISSING, *EITHER), ()),
    # sbird/fake_spectra#22: the ranks do their part one after the other, and all share one processor
    **dict.fromkeys(("one-rank-after-the-other",)),
}
R, E, T = "thirty_fourth_ranks", "thirty_fourth_engines", "thirty_fourth_threads"
M, N = "thirty_fourth_mpi", "thirty_fourth_native"
_CHILD, _SERVER, _SSH = ("main", "child"), ("main", "server"), ("main", "ssh")

THIRTY_FOURTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # open-mpi/ompi#12530: a communicator is made out of all ranks, and only those above the first two call for it; the
    # others have come to the end. Doubtful: whom to blame
    Live(M, "creates-a-group-of-some", (MISMATCH, MISSING, EXIT), (("2", "3"), ("0", "1"), ("0",), ("1",), ("2",)),
         _FOUR, how="mpirun", needs="mpi4py"),
    # OpenMiniServer/openthread#2: the flag of a spin lock is not set up and counts as taken, so that who says stop
    # spins for ever
    Live(N, "says-stop-to-its-thread", EITHER),
    # taskflow/taskflow#42: a task adds a task while the pool is shut down; the workers have gone, and nobody runs it
    Live(N, "adds-tasks-in-tasks", EITHER),
    # hpcc-systems/HPCC-Platform#3654: a callback to spill rows comes, with the lock of the callbacks, while who has
    # the rows sets up another callback with the lock of the rows
    Live(N, "spills-its-rows", (LOCKS,)),
    # RSDKModding/RSDKv4-Decompilation#366: a server says nothing until somebody connects
    Live(N, "waits-for-its-players", (HEALTHY,)),
    # empicano/aiomqtt#174: called in the thread of the loop, it gives the loop something to do and waits for that
    Live(T, "registers-its-socket", EITHER),
    # flwrlabs/flower#7914: a second signal comes while the handler of the first one has the lock, in the same thread
    Live(T, "is-told-twice-to-stop", EITHER),
    # PrefectHQ/prefect#14194: tasks that wait for other tasks have all workers of the pool
    Live(T, "flows-by-few-workers", EITHER),
    # jline/jline3#562: the thread of a status line is not a daemon, and nobody tells it to end
    Live(T, "shows-a-status-line", (EXIT, *EITHER)),
    # wandb/wandb#11402: garbage is collected while the lock of the captured console is held, and a finaliser prints
    Live(T, "captures-the-console", EITHER),
    # zeromq/malamute#178: a pong comes first and moves the client out of the state that expects the answer. As threads
    # at rest it may be left open
    Live(T, "offers-a-service", (OTHER, LOCKS, OPEN), needs="zmq"),
    # cryptimeleon/math#134: what a thread computes fails, and who waits for the result is not told
    Live(T, "computes-a-pairing", EITHER),
    # helixml/kodit#118: to index a large repository takes more than an hour, without a word
    Live(T, "indexes-a-repository", (HEALTHY,)),
    # usnistgov/fipy#694: the domain has many more cells than before, and nothing seems to happen
    Live(T, "solves-a-large-domain", (HEALTHY,)),
    # peonist-ai/halogen-flash-server#18: the checkpoint is read page by page, which takes half an hour
    Live(T, "pins-its-checkpoint", (HEALTHY,)),
    # markfasheh/duperemove#306: a very large file is hashed in small blocks
    Live(T, "hashes-small-blocks", (HEALTHY,)),
    # spotify/luigi#534: a process is forked while a thread looks up a host with the lock of that
    Live(E, "looks-up-hosts", (FORK,), (("child",),), _CHILD),
    # TooTallNate/Java-WebSocket#354: the handshake is refused, the client is closing and reads on until it is closed,
    # and the server keeps the connection for the next request
    Live(E, "is-refused-its-handshake", (*EITHER, MISSING), (("main",), _SERVER), _SERVER),
    # amoffat/sh#298: to fetch by git asks for a passphrase at a terminal that nobody sees
    Live(E, "fetches-with-a-passphrase", (OTHER, LOCKS, MISSING), (("ssh",), ("main",), _SSH), _SSH),
    # DeterminateSystems/nix-src#594: a migration wants the global lock for itself, and an idle cache has it shared
    Live(E, "migrates-its-store", (LOCKS, OTHER, MISSING), (("cache",),), ("main", "cache")),
    # linux-noah/noah#18: a kernel is built, several times as slow as elsewhere
    Live(E, "builds-a-kernel", (HEALTHY,), roles=("main", "make")),
    # kijai/ComfyUI-Florence2#166: the model is downloaded each time, for minutes
    Live(E, "downloads-its-captioner", (HEALTHY,), roles=("main", "hub")),
)  # fmt: skip

THIRTY_FOURTH_BY_NAME: Dict[str, Live] = {row.id: row for row in THIRTY_FOURTH}
