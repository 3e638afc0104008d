"""Waiting for a rank of another host: through the store of torch.distributed, else through a shared folder.

Sockets do not reach there. The debugged rank says "passed" and, while its prompt is open, gives a sign of life; those
that wait look five times a second. `TCPStore.wait` would be an event, but holds the lock of the client that NCCL's
heartbeat needs, too (torch/csrc/distributed/c10d/TCPStore.cpp), so `check` is used.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any, List, Optional, Protocol, Tuple

from gdbext.rankpdb.identity import Identity, torch_distributed

SHARED = "GDBEXT_PDB_SHARED"
"""A folder that all hosts of the job see, for jobs without torch.distributed."""
_LOOK, _SIGN, _DEAD = 0.2, 2.0, 15.0  # seconds: between looks, between signs of life, without a sign until given up


class _Board(Protocol):
    name: str

    def put(self, key: str) -> None: ...
    def has(self, key: str) -> bool: ...
    def beat(self, key: str) -> None: ...
    def beats(self, key: str) -> float: ...


class _Store:
    """The job's own key-value store (TCPStore, as torchrun starts it)."""

    name = "the store of torch.distributed"

    def __init__(self, store: Any) -> None:
        self._store = store

    def put(self, key: str) -> None:
        self._store.set(key, "1")

    def has(self, key: str) -> bool:
        return bool(self._store.check([key]))

    def beat(self, key: str) -> None:
        self._store.add(key, 1)

    def beats(self, key: str) -> float:
        return float(self._store.add(key, 0))


class _Folder:
    """Files in a folder that all hosts see. Those of an earlier run are older than this process, and do not count."""

    name = f"the folder {SHARED}"

    def __init__(self, folder: str) -> None:
        self._folder, self._since = folder, os.stat(f"/proc/{os.getpid()}").st_mtime - 60

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, "gdbext-" + key.replace("/", "_").replace("\t", "_"))

    def put(self, key: str) -> None:
        with open(self._path(key), "w", encoding="utf-8"):
            os.utime(self._path(key))

    def has(self, key: str) -> bool:
        return self.beats(key) > self._since

    beat = put

    def beats(self, key: str) -> float:
        try:
            return os.stat(self._path(key)).st_mtime
        except OSError:
            return 0.0


def _board() -> Optional[_Board]:
    if torch_distributed() is not None:
        return _Store(sys.modules["torch.distributed.distributed_c10d"]._get_default_store())
    folder = os.environ.get(SHARED)
    return _Folder(folder) if folder and os.path.isdir(folder) else None


def _key(me: Identity, place: Tuple[str, int], what: str) -> str:
    again = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")  # the store outlives the ranks that torchrun starts anew
    return f"pdb-{me.job}-{again}/{what}/{place[0]}/{place[1]}"


class SignOfLife:
    """While a prompt is open, ranks of other hosts can tell that this rank lives."""

    def __init__(self, me: Identity, place: Tuple[str, int]) -> None:
        self._over = threading.Event()
        board = _board() if me.here is not None else None
        if board is not None:
            key = _key(me, place, "alive")
            threading.Thread(target=self._give, args=(board, key), name="gdbext-pdb", daemon=True).start()

    def _give(self, board: _Board, key: str) -> None:
        try:
            while not self._over.is_set():
                board.beat(key)
                self._over.wait(_SIGN)
        except Exception:  # noqa: BLE001  the store is gone, and with it those that would look
            return

    def end(self) -> None:
        self._over.set()


def passes(me: Identity, place: Tuple[str, int]) -> None:
    """Tell ranks of other hosts that nobody need wait here for us."""
    board = _board() if me.here is not None else None
    if board is not None:
        try:
            board.put(_key(me, place, "passed"))
        except Exception:  # noqa: BLE001  the store is gone: those that wait see that, too
            return


def wait(me: Identity, chosen: int, place: Tuple[str, int], until: float) -> str:
    """Wait until a rank of another host has passed `place`; returns why the wait is over, and through what it went."""
    board = _board()
    if board is None:
        return f"rank {chosen} is on another host, and neither torch.distributed nor {SHARED} reaches it"
    try:
        return _look(board, me, chosen, place, until)
    except Exception as error:  # noqa: BLE001  a breakpoint never raises
        return f"{board.name} does not answer any more ({type(error).__name__})"


def _look(board: _Board, me: Identity, chosen: int, place: Tuple[str, int], until: float) -> str:
    seen: List[float] = [0.0, time.monotonic()]  # sign of life, and when it came
    alive, passed = _key(me, place, "alive"), _key(me, place, "passed")
    while time.monotonic() < until:
        if board.has(passed):
            return f"rank {chosen} has gone on (told by {board.name})"
        sign = board.beats(alive)
        if sign != seen[0]:
            seen = [sign, time.monotonic()]
        elif seen[0] and time.monotonic() - seen[1] > _DEAD:
            return f"rank {chosen} gives no sign of life any more"
        time.sleep(_LOOK)
    return f"the time for rank {chosen} is up"
