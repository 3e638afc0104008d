"""The nineteenth set of live programs: each imitates one public report, even numbers only. Each search of reports gave
the first one that tells its root cause.

As `table.py`; played by `scripts/bench accuracy --family live-19` alone. Each truth was written before gdbext looked,
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
    # mosaicml/composer#1690
    "tells-of-its-full-memory": ((MISMATCH, MISSING), (("1",),)),
    # KempnerInstitute/KempnerForge#50
    "checkpoint-that-one-does-not-see": ((MISMATCH, MISSING), (("2",),)),
    # pytorch/torchtitan#1618
    "validation-set-at-its-end": ((MISMATCH, MISSING), (("1",),)),
    # meta-pytorch/torchcomms#2566: each waits for the one before it
    "connects-to-one-peer-after-the-other": ((MISMATCH, OTHER, LOCKS), ()),
    # mosaicml/llm-foundry#716
    "signal-file-of-the-first": None,
}
_MPI = {
    # ComputationalRadiationPhysics/picongpu#1326
    "send-still-behind-a-copy": ((MISMATCH, MISSING), (("2",),)),
    # open-mpi/ompi#6740
    "window-freed-where-it-failed": ((MISMATCH, MISSING), (("1",),)),
}
R, E, T = "nineteenth_ranks", "nineteenth_engines", "nineteenth_threads"
M, N = "nineteenth_mpi", "nineteenth_native"
_CHILD = ("main", "child")
_SERVER = ("main", "server")

NINETEENTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # jbaldwin/libcoro#398
    Live(N, "put-back-after-the-last-notify", EITHER),
    # googleapis/google-cloud-cpp#13314
    Live(N, "continuation-of-an-abandoned-promise", EITHER),
    # arangodb/arangodb#14130
    Live(N, "reads-again-behind-a-writer", EITHER),
    # twisted/twisted#7736
    Live(T, "stop-signal-while-the-log-is-written", (LOCKS,)),
    # duckdb/duckdb#10854
    Live(T, "database-closed-by-a-relation", (GIL,)),
    # zeromq/libzmq#58: the peer is not there
    Live(T, "unsent-when-the-context-ends", (*EITHER, EXIT, MISSING), needs="zmq"),
    # python/cpython#2038: natively an event loop at rest
    Live(T, "cancelled-when-its-turn-came", (*EITHER, OPEN)),
    # dice-group/gerbil#348
    Live(T, "permits-lost-with-errors", EITHER),
    # deepsourcelabs/beacon-py#18
    Live(T, "timer-that-is-no-daemon", (EXIT, *EITHER)),
    # pharo-contributions/OSSubprocess#58
    Live(E, "errors-that-are-read-at-the-end", EITHER, (("main",), _CHILD, ("child",)), _CHILD),
    # sheredom/subprocess.h#8
    Live(E, "own-end-of-the-output", EITHER),
    # tronbyt/server#186
    Live(E, "library-loaded-before-the-workers", (FORK,), (("child",),), _CHILD),
    # ray-project/ray#21488
    Live(E, "pool-inside-a-pool-of-actors", (OTHER, LOCKS, MISSING), (), ("main", "a"), needs="ray"),
    # WebODM/WebODM#676: who locked it was killed
    Live(E, "task-locked-by-a-dead-worker", (*EITHER, MISSING)),
    # websockets/ws#1218
    Live(E, "client-parses-slowly", (HEALTHY,), roles=_SERVER),
    # luigifcruz/blade#80
    Live(E, "first-enqueue-compiles-kernels", (HEALTHY,)),
    # official-stockfish/fishtest#42
    Live(E, "no-tasks-for-the-worker", (HEALTHY,), roles=_SERVER),
    # apache/pinot#9158
    Live(E, "sleeps-after-its-last-attempt", (HEALTHY,)),
    # vshulcz/deja-vu#994
    Live(E, "silent-while-another-indexes", (HEALTHY,), roles=_CHILD),
    # FusionAuth/fusionauth-issues#3006
    Live(E, "makes-a-key-of-many-bits", (HEALTHY,)),
    # solana-labs/solana#14586
    Live(E, "writes-stopped-for-a-compaction", (HEALTHY,)),
    # dipdup-io/dipdup#348
    Live(E, "next-run-in-four-hours", (HEALTHY,)),
    # facebookresearch/fairseq#286
    Live(E, "one-story-on-a-cpu", (HEALTHY,), needs="torch"),
)  # fmt: skip

NINETEENTH_BY_NAME: Dict[str, Live] = {row.id: row for row in NINETEENTH}
