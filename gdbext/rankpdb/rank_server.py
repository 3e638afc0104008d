"""A rank's own end of the meeting: a thread that answers the other ranks and terminals, and what it knows.

Started by the first breakpoint a process comes to, never before. It owns no lock while it waits, and it is a daemon:
the rank ends as it would without it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import threading
import time
from typing import Callable, Dict, List, Optional, Tuple, Union

from gdbext.rankpdb import folder
from gdbext.rankpdb.identity import Identity, is_ending, start_time
from gdbext.rankpdb.missing_rank import Absent
from gdbext.rankpdb.other_hosts import Distant
from gdbext.rankpdb.wire import Message, Wire, connect

Place = Tuple[str, int]
"""A breakpoint as all ranks count it: `file:line` of the call, and how often this rank came by (from 1)."""
NOT_IN_TIME = "did not arrive in time"
_LOOK = 1.0  # seconds between two looks whether a rank that has not come yet lives
_STILL_THERE = 2.0  # seconds between two looks whether our socket is
_NAP = 0.05  # seconds between two looks whether a rank that moves lives


def answer_without_prompt(wire: Wire, message: Message) -> Optional[str]:
    """What a rank without a prompt answers to a terminal."""
    return "it is not at a breakpoint"


class Station:
    """What others may ask this rank: has it passed a place, what does it do, may a terminal have its prompt."""

    def __init__(self, me: Identity) -> None:
        self.me = me
        self.changed = threading.Condition()
        self.passed: Dict[str, int] = {}  # file:line -> the last time that nobody need wait for us
        self.handed: Dict[Place, int] = {}  # another rank took our turn
        self.chosen: Optional[int] = None  # by `gdbext pdb --rank N`, for all breakpoints to come
        self.doing: Message = {"state": "running"}
        self.on_terminal = answer_without_prompt
        self.on_release: Optional[Callable[[], None]] = None  # while a prompt of ours is open
        self._waiting: Dict[Place, List[Tuple[int, Wire]]] = {}
        self._open: Optional[Place] = None
        self._peers: Dict[int, str] = {}
        self._absent: Dict[int, Absent] = {}
        folder.remove_stale_sockets()
        self.far = Distant(me)
        self._closed = False
        self._server, self.path = self._listen()
        atexit.register(self.close)
        threading.Thread(target=self._serve, name="gdbext-pdb", daemon=True).start()
        self._greet()

    # --- what this rank does ---

    def opens(self, place: Place) -> None:
        """We are at this place: those that wait there know that we have come."""
        with self.changed:
            self._open = place
            waiting = list(self._waiting.get(place, ()))
        for _, wire in waiting:
            wire.send({"here": True})

    def passes(self, place: Place) -> None:
        """Nobody need wait for us at this place any more."""
        with self.changed:
            self.passed[place[0]] = max(place[1], self.passed.get(place[0], 0))
        self._tell(place, {"passed": True})

    def hands(self, place: Place, rank: int) -> None:
        """Another rank is debugged at this place, and those that wait for us wait for it."""
        with self.changed:
            self.handed[place] = rank
        self._tell(place, {"now": rank})

    def waiters(self, place: Place) -> List[int]:
        """Ranks that wait for us there now."""
        with self.changed:
            return sorted(rank for rank, wire in self._waiting.get(place, ()) if not wire.is_gone())

    def ask(self, rank: int, question: Message, timeout: float) -> Union[Wire, str]:
        """A connection to a rank of this host with the question sent, once it has come; else why there is none."""
        until, absent = time.monotonic() + timeout, self.absent(rank)
        with self.changed:
            while rank not in self._peers:
                left = until - time.monotonic()
                if left <= 0:
                    return NOT_IN_TIME
                came = self.changed.wait_for(lambda: rank in self._peers, min(left, _LOOK))
                if not came and absent is not None and absent.has_ended():
                    return "ended before it arrived here"
            path = self._peers[rank]
            self._absent.pop(rank, None)
        wire = connect(path)
        if wire is not None and wire.send(question):
            return wire
        self.lost(rank)
        return self.ask(rank, question, until - time.monotonic()) if self._moves(rank, path, until) else "has ended"

    def _moves(self, rank: int, path: str, until: float) -> bool:
        """Whether a rank that cannot be reached at its path says that it is somewhere else now."""
        _, pid, start = os.path.basename(path).split(".")
        until = min(until, time.monotonic() + 3 * _STILL_THERE)
        with self.changed:
            while start_time(int(pid)) == start and not is_ending(int(pid), start) and time.monotonic() < until:
                if self.changed.wait_for(lambda: rank in self._peers, _NAP):
                    return True
        return False

    def absent(self, rank: int) -> Optional[Absent]:
        """The process of a rank of this host that has not come to any breakpoint yet."""
        if rank not in self._absent and rank not in self._peers:
            self._absent[rank] = Absent(self.me, rank)
        return None if rank in self._peers else self._absent[rank]

    def lost(self, rank: int) -> None:
        """It cannot be reached there any more; perhaps it moves, or is started anew."""
        with self.changed:
            path = self._peers.pop(rank, None)
        if path is not None:
            folder.remove(path)

    def close(self) -> None:
        """Nothing stays behind, of ranks that were killed neither."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # ends the thread that waits in `accept`
        self._server.close()
        folder.remove(self.path)
        folder.members(os.path.dirname(self.path))
        self.far.close()

    def forget(self) -> None:
        """In a forked child: the sockets are its parent's, who must not seem alive because of us."""
        atexit.unregister(self.close)
        for number in _ends_of(self._server.getsockname()):
            os.close(number)
        self._waiting.clear()

    # --- where we are ---

    def _listen(self) -> Tuple[socket.socket, str]:
        server, path = folder.listen(self.me.job, self.me.rank)
        server.settimeout(_STILL_THERE)
        return server, path

    def _greet(self) -> None:
        """Tell the ranks that are here where they find us."""
        job = os.path.basename(os.path.dirname(self.path))
        for place in folder.jobs():
            for member in folder.members(place) if os.path.basename(place) == job else ():
                if member.path != self.path:
                    self._meet(member)

    def _stay(self) -> None:
        """The folder of a login session goes with the session, and somebody may tidy up in /tmp: then we move."""
        with contextlib.suppress(OSError):
            if not os.path.exists(self.path):
                before = self._server
                self._server, self.path = self._listen()
                before.close()
                self._greet()
            if self._closed:  # meanwhile
                self.close()

    # --- what others want ---

    def _meet(self, member: folder.Member) -> None:
        with self.changed:
            self._peers[member.rank] = member.path
            self.changed.notify_all()
        wire = connect(member.path)
        if wire is not None:
            wire.send({"hello": self.me.rank, "path": self.path})
            wire.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except socket.timeout:
                self._stay()
                continue
            except OSError:  # closed: the process ends, or was forked
                return
            # A peer that connects and says nothing must not keep the others waiting.
            threading.Thread(target=self._answer, args=(Wire(connection),), name="gdbext-pdb", daemon=True).start()

    def _answer(self, wire: Wire) -> None:
        try:
            message = wire.receive(5.0) if wire.is_ours() else None
        except socket.timeout:
            message = None
        kept = False
        if message is not None:
            kept = self._take(message, wire)
        if not kept:
            wire.close()

    def _take(self, message: Message, wire: Wire) -> bool:
        """True when the connection is kept."""
        if "hello" in message:
            with self.changed:
                self._peers[int(message["hello"])] = str(message["path"])
                self.changed.notify_all()
        elif "wait" in message:
            return self._let_wait((str(message["wait"]), int(message["hit"])), int(message["rank"]), wire)
        elif "status" in message:
            wire.send(self.status())
        elif "choose" in message:
            with self.changed:
                self.chosen = int(message["choose"])
                self.changed.notify_all()
            wire.send({"chosen": self.chosen})
        elif "release" in message:
            release = self.on_release
            waiting = self.status()["waiters"]
            if release is not None:
                release()
            wire.send({"released": waiting if release is not None else None})
        elif "terminal" in message:
            refused = self.on_terminal(wire, message)
            if refused:
                wire.send({"refused": refused})
            return refused is None
        return False

    def status(self) -> Message:
        """For `gdbext pdb --list`."""
        with self.changed:
            waiting = sorted({rank for place in self._waiting for rank in self.waiters(place)})
            return {"rank": self.me.rank, "pid": os.getpid(), "waiters": waiting, **self.doing}

    def _let_wait(self, place: Place, rank: int, wire: Wire) -> bool:
        with self.changed:
            if self.passed.get(place[0], 0) >= place[1]:
                answer: Message = {"passed": True}
            elif place in self.handed:
                answer = {"now": self.handed[place]}
            else:
                self._waiting.setdefault(place, []).append((rank, wire))
                if place == self._open:
                    wire.send({"here": True})
                return True
        wire.send(answer)
        return False

    def _tell(self, place: Place, message: Message) -> None:
        with self.changed:
            waiting = self._waiting.pop(place, [])
            if "passed" in message:  # earlier times at the same place are passed as well
                for other in [key for key in self._waiting if key[0] == place[0] and key[1] <= place[1]]:
                    waiting += self._waiting.pop(other)
        for _, wire in waiting:
            wire.send(message)
            wire.close()


def _ends_of(address: str) -> List[int]:
    """File descriptors of the socket that listens at an address and of all that were accepted there, whoever holds
    them: a thread that was in the midst of a question when its process was forked does not run in the child, and its
    descriptors stay."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.fromfd(int(name), socket.AF_UNIX, socket.SOCK_STREAM) as one:
                if one.getsockname() == address:
                    found.append(int(name))
        except OSError:  # no socket, or closed meanwhile
            continue
    return found
