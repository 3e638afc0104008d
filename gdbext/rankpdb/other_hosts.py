"""Waiting for a rank of another host: through the job's own store, else through a shared folder.

Sockets do not reach there. The debugged rank says "passed" and, while it keeps others waiting, gives a sign of life;
those that wait look five times a second. `TCPStore.wait` would be an event, but holds the lock of the client that
NCCL's heartbeat needs, too (torch/csrc/distributed/c10d/TCPStore.cpp), so `check` is used.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Protocol, Set

from gdbext.rankpdb.host_folder import Place
from gdbext.rankpdb.identity import Identity, torch_distributed
from gdbext.rankpdb.shared_folder import Folder, Seen

SHARED = "GDBEXT_PDB_SHARED"
"""A folder that all hosts of the job see, for jobs without a store."""
_LOOK, _SIGN, _DEAD = 0.2, 2.0, 15.0  # seconds: between looks, between signs of life, without a sign until given up
_IDLE = 10.0  # seconds between signs of a rank that has a sheet in the shared folder and keeps nobody waiting
_MINDSPORE = ("mindspore.mint.distributed.distributed", "mindspore.ops.function.comm_func")
"""Modules with a class TCPStore (mindspore 2.10)."""


class _Board(Protocol):
    """Where ranks of several hosts can read what one of them says."""

    name: str
    open: Set[Place]

    def opens(self, place: Place) -> None: ...
    def passes(self, place: Place) -> None: ...
    def beat(self) -> None: ...
    def look(self, rank: int, place: Place) -> Seen: ...


class _Store:
    """A key-value store of the job."""

    name = "the store of torch.distributed"

    def __init__(self, me: Identity, store: Any) -> None:
        self.open: Set[Place] = set()
        self._me, self._store = me, store

    def opens(self, place: Place) -> None:
        self.open.add(place)

    def passes(self, place: Place) -> None:
        self.open.discard(place)
        self._put(self._key("passed", place))

    def beat(self) -> None:
        for place in list(self.open):
            self._store.add(self._key("alive", place), 1)

    def look(self, rank: int, place: Place) -> Seen:
        passed = self._has(self._key("passed", place))
        return Seen(passed, False, 0.0 if passed else float(self._store.add(self._key("alive", place), 0)))

    def _key(self, what: str, place: Place) -> str:
        again = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")  # the store outlives ranks that torchrun starts anew
        return f"pdb-{self._me.job}-{again}/{what}/{place[0]}/{place[1]}"

    def _put(self, key: str) -> None:
        self._store.set(key, "1")

    def _has(self, key: str) -> bool:
        return bool(self._store.check([key]))


class _Counters(_Store):
    """MindSpore's has no `check`, and its `get` of a key that is not there holds the GIL until its timeout (measured,
    2.10); `add` answers at once."""

    name = "the TCPStore of mindspore"

    def _put(self, key: str) -> None:
        self._store.add(key, 1)

    def _has(self, key: str) -> bool:
        return int(self._store.add(key, 0)) > 0


def _of_torch(me: Identity) -> Optional[_Board]:
    if torch_distributed() is None:
        return None
    return _Store(me, sys.modules["torch.distributed.distributed_c10d"]._get_default_store())


def _of_mindspore(me: Identity) -> Optional[_Board]:
    """One that the program has made and holds: MindSpore does not tell of it otherwise."""
    kinds = [getattr(sys.modules.get(name), "TCPStore", None) for name in _MINDSPORE]
    kinds = [kind for kind in kinds if kind is not None]
    if not kinds:
        return None
    found = [one for one in gc.get_objects() if type(one) in kinds and hasattr(one, "instance")]
    found.sort(key=lambda one: (str(one.host), int(one.port)))  # the same one in each rank
    return _Counters(me, found[0]) if found else None


_STORES: List[Callable[[Identity], Optional[_Board]]] = [_of_torch, _of_mindspore]


class Distant:
    """This rank's words to the ranks of other hosts, and theirs to it."""

    def __init__(self, me: Identity) -> None:
        self._me = me
        self._said: Dict[Place, _Board] = {}  # where it was told that our prompt is open
        self._boards: List[_Board] = []  # those that get signs of life
        self._lock = threading.Lock()
        self._awake = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._over = False
        shared = os.environ.get(SHARED)
        self._folder = Folder(me, shared, _DEAD) if shared and os.path.isdir(shared) else None
        if self._folder is not None:
            self._folder.sweep()

    # --- the debugged rank ---

    def opens(self, place: Place) -> None:
        """Our prompt is open there, or will be: signs of life until it is passed."""
        try:
            board = self._board() if self._me.here is not None else None
            if board is not None:
                board.opens(place)
                self._said[place] = board
                self._give(board)
        except Exception:  # noqa: BLE001  those that wait say that they cannot
            return

    def passes(self, place: Place) -> None:
        """Nobody need wait there for us."""
        if self._me.here is None:
            return
        try:
            now = self._board()
        except Exception:  # noqa: BLE001  as below
            now = None
        before = self._said.pop(place, None)
        for board in [now] if before is None or before is now else [before, now]:
            try:
                if board is not None:
                    board.passes(place)
            except Exception:  # noqa: BLE001, S112  the store is gone: those that wait see that, too
                continue

    def _give(self, board: _Board) -> None:
        with self._lock:
            if board not in self._boards:
                self._boards.append(board)
            if self._thread is None:
                self._thread = threading.Thread(target=self._signs, name="gdbext-pdb", daemon=True)
                self._thread.start()
        self._awake.set()

    def _signs(self) -> None:
        while True:
            self._awake.clear()
            with self._lock:
                self._boards = [board for board in self._boards if board.open or board is self._folder]
                boards = list(self._boards)
                if not boards or self._over:
                    self._thread = None
                    return
            for board in boards:
                try:
                    board.beat()
                except Exception:  # noqa: BLE001  the store is gone, and with it those that would look
                    board.open.clear()
            self._awake.wait(_SIGN if any(board.open for board in boards) else _IDLE)

    # --- the ranks that wait ---

    def wait(self, chosen: int, place: Place, until: float) -> str:
        """Wait until a rank of another host has passed `place`; returns why that is over, and through what it went."""
        try:
            board = self._board()
            if board is None:
                return f"rank {chosen} is on another host, and {self.transport()}"
            return _look(board, chosen, place, until)
        except Exception as error:  # noqa: BLE001  a breakpoint never raises
            why = str(error) if isinstance(error, PermissionError) else type(error).__name__
            return f"{self.transport()} no longer answers ({why})"

    def transport(self) -> str:
        """What reaches the ranks of other hosts."""
        try:
            board = self._board()
        except Exception:  # noqa: BLE001  as in `wait`
            return "the store"
        return board.name if board else f"neither torch.distributed nor a TCPStore of mindspore nor {SHARED} reaches it"

    def _board(self) -> Optional[_Board]:
        for find in _STORES:
            board = find(self._me)
            if board is not None:
                return next((one for one in self._boards if one.name == board.name), board)
        return self._folder

    # --- the end ---

    def close(self) -> None:
        """At the end of the process."""
        self._over = True
        self._awake.set()
        if self._folder is not None:
            self._folder.close()


def _look(board: _Board, chosen: int, place: Place, until: float) -> str:
    sign, when = 0.0, time.monotonic()
    while time.monotonic() < until:
        seen = board.look(chosen, place)
        if seen.passed:
            return f"rank {chosen} has resumed (reported by {board.name})"
        if seen.ended:
            return f"rank {chosen} has ended (reported by {board.name})"
        if seen.sign != sign:
            sign, when = seen.sign, time.monotonic()
        elif sign and time.monotonic() - when > _DEAD:
            return f"rank {chosen} sends no heartbeat any more"
        time.sleep(_LOOK)
    return f"the time for rank {chosen} is up"
