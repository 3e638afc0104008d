"""Who is at the other end of a pipe, socket or message queue that a thread waits for: by inode and port (proc(5),
sock_diag(7), mq_overview(7)).

Children and file locks, whose other end the kernel names itself, are in file_locks.py and waited_children.py.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Callable, Collection, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from gdbext.discovery.locks_pipes_sockets.event_loops import leaves_unread, only_wake_ups, watched
from gdbext.discovery.locks_pipes_sockets.file_locks import lock_wait, waits_for_lock
from gdbext.discovery.locks_pipes_sockets.listening import listening, takes_datagrams
from gdbext.discovery.locks_pipes_sockets.named_pipes import opens_pipe
from gdbext.discovery.locks_pipes_sockets.open_files import (
    QUEUES,
    Holder,
    field,
    file_of,
    holders,
    link_of,
    read_fdinfo,
    states_and_names,
)
from gdbext.discovery.locks_pipes_sockets.sockets import LISTENS, Ends, socket_rows, unix_sockets
from gdbext.discovery.locks_pipes_sockets.tcp_traffic import traffic
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.proc.waited_children import ends, started_child, waited_child, with_only_child
from gdbext.knowledge.runtimes import system_calls as known
from gdbext.knowledge.runtimes.untimed_calls import POLLED, has_no_limit
from gdbext.model.codes import Code
from gdbext.model.locks import LISTENING, NOT_ACCEPTED, NOTHING, UNASKED, UNSET, Peer
from gdbext.model.missing import Maybe, Missing

_TIMER, _PIDFD, _EPOLL = "anon_inode:[timerfd]", "anon_inode:[pidfd]", "anon_inode:[eventpoll]"
_INOTIFY = "anon_inode:inotify"
READS, WRITES = (
    {known.READ: "read", known.READV: "readv", known.RECVFROM: "recvfrom", known.RECVMSG: "recvmsg",
     known.MQ_TIMEDRECEIVE: "mq_receive"},
    {known.WRITE: "write", known.WRITEV: "writev", known.SENDTO: "sendto", known.SENDMSG: "sendmsg",
     known.MQ_TIMEDSEND: "mq_send"},
)  # fmt: skip
"""System calls whose first argument is the file that they wait for."""

_MOST_WAITS = 64
_STEPS = 3  # a shell, what it runs, and what that runs
_GETEVENTS = 1  # IORING_ENTER_GETEVENTS
_ANY = ("0.0.0.0:0", "[::]:0")


class _End(NamedTuple):
    """What to look for in all processes: `pipe:[7]`, `socket:[8]`, ..., as open_files.py names it."""

    file: str
    closed_to: Optional[int]  # an access mode that cannot be the other end's


class _Wait(NamedTuple):
    tid: int
    file: str
    end: Maybe[_End]
    writes: bool = False
    unowed: bool = False  # this and the next one as in Peer
    back: str = ""
    others: Tuple[_End, ...] = ()  # of more files, any of which will do


_Found = Union[_Wait, Peer]
Asleep = Callable[[int, int], Optional[Tuple[object, Sequence[int]]]]
"""Of a thread (pid, tid) that sleeps: what changes whenever it runs, and its system call
(capture/without_stop/sleeping_threads.py)."""


def waits_for(
    proc: ProcFS,
    pid: int,
    syscalls: Mapping[int, Optional[Sequence[int]]],
    asleep: Optional[Asleep] = None,
    seen: Tuple[int, ...] = (),
) -> Tuple[Peer, ...]:
    """One row for each thread of the process that waits in a read or write of a pipe or socket, or for a lock on a
    file, or for a child to end, at most 64. `asleep` tells what stands behind the other ends; `seen`: the
    processes on the way to this one."""
    waits: List[_Found] = []
    for tid, call in syscalls.items():
        found = _wait(proc, pid, tid, call) if call and len(waits) < _MOST_WAITS else None
        if found is not None:
            waits.append(found)
    wanted = {end.file for wait in waits if isinstance(wait, _Wait) for end in _ends(wait)}
    held, whole = holders(proc, wanted) if wanted else ({}, True)
    # Nothing tells whether a thread of the process itself should write to one of several pipes, or another process.
    waits = [one for one in waits if not (isinstance(one, _Wait) and one.others and pid in _holding(one, held))]
    peers = (wait if isinstance(wait, Peer) else _peer(proc, wait, held, whole) for wait in waits)
    return tuple(replace(peer, then=_peer_waits(proc, pid, peer, asleep, (*seen, pid))) for peer in peers)


def _peer_waits(
    proc: ProcFS, pid: int, peer: Peer, asleep: Optional[Asleep], seen: Tuple[int, ...]
) -> Tuple[Peer, ...]:
    """What the process at the other end waits for, where it is one and has one thread. The thread that waits must not
    have run while that was read: else each may be seen to wait, in turns."""
    pids = () if isinstance(peer.processes, Missing) else peer.processes
    if asleep is None or len(pids) != 1 or len(seen) > _STEPS or pids[0] in seen or len(proc.tasks(pids[0])) != 1:
        return ()
    before, other = asleep(pid, peer.thread), asleep(pids[0], pids[0])
    if before is None or other is None or before != asleep(pid, peer.thread):
        return ()
    return waits_for(proc, pids[0], {pids[0]: with_only_child(proc, pids[0], other[1])}, asleep, seen)


def _wait(proc: ProcFS, pid: int, tid: int, call: Sequence[int]) -> Optional[_Found]:
    number, descriptor = call[:2]
    if waits_for_lock(call):
        return lock_wait(proc, pid, tid, descriptor, number == known.FLOCK)
    other = waited_child(proc, pid, tid, started_child(proc, pid, tid, call)) or opens_pipe(proc, pid, tid, call)
    if other is not None:
        return other
    if number in (known.EPOLL_WAIT, known.EPOLL_PWAIT) and has_no_limit(call):
        return _own_events(proc, pid, tid, descriptor)
    if number == POLLED:
        return _any_pipe(proc, pid, tid, call[1:])
    if number == known.IO_URING_ENTER:
        return _ring(proc, pid, tid, call)
    if number not in READS and number not in WRITES:
        return None
    file = file_of(proc, pid, str(descriptor))
    if file.startswith("socket:"):
        return _socket(proc, pid, tid, file, number in READS)._replace(writes=number in WRITES)
    if file.startswith(("pipe:", QUEUES)):
        return _Wait(tid, file, _End(file, 0 if number in READS else 1), number in WRITES)
    if file:
        return _Wait(tid, file, _End(file, None))
    link = link_of(proc, pid, str(descriptor))
    if link == _PIDFD:
        return ends(proc, tid, field("Pid", read_fdinfo(proc, pid, str(descriptor))) or 0)
    if link == _INOTIFY:
        return _changes(tid)
    return _timer(proc, pid, tid, descriptor) if link == _TIMER else None


def _changes(tid: int) -> Peer:
    """A wait for changes of files or folders (inotify(7))."""
    return Peer(thread=tid, file="inotify", processes=Missing("whoever changes these files", Code.CHANGES))


def _any_pipe(proc: ProcFS, pid: int, tid: int, descriptors: Sequence[int]) -> Optional[_Found]:
    """A wait until one of several pipes can be read, as for the output and the errors of a child; or until files change
    or a pipe wakes it up."""
    if any(link_of(proc, pid, str(one)) == _INOTIFY for one in descriptors):
        return _changes(tid)
    files = [file_of(proc, pid, str(one)) for one in descriptors]
    if not all(file.startswith("pipe:") for file in files):
        return None
    first, *others = (_End(file, 0) for file in files)
    return _Wait(tid, files[0], first, others=tuple(others))


def _ring(proc: ProcFS, pid: int, tid: int, call: Sequence[int]) -> Optional[Peer]:
    """A wait for completions of an io_uring (io_uring_enter(2)) that never got a request: nobody but the only thread of
    the only process that has it could submit one."""
    text = read_fdinfo(proc, pid, str(call[1]))
    asks = len(call) > 4 and call[2] == 0 < call[3] and call[4] & _GETEVENTS
    empty = all(re.search(rf"^{name}:\s*(0x)?0$", text, re.MULTILINE) for name in ("SqTail", "CachedSqHead"))
    alone = len(proc.tasks(pid)) == 1 and _is_childless(proc, pid)
    return Peer(thread=tid, file=UNASKED, processes=()) if asks and empty and alone else None


def _timer(proc: ProcFS, pid: int, tid: int, descriptor: int) -> Optional[Peer]:
    """A read of a timerfd (timerfd_create(2)) that is disarmed: only a thread of this process can arm it, because no
    child has inherited it. An armed one expires by itself."""
    off = re.search(r"^it_value: \(0, 0\)$", read_fdinfo(proc, pid, str(descriptor)), re.MULTILINE)
    return Peer(thread=tid, file=UNSET, processes=(pid,)) if off and _is_childless(proc, pid) else None


def _is_childless(proc: ProcFS, pid: int) -> bool:
    """Whether its main thread has no child that may have inherited a file; False where that cannot be read."""
    return _children(proc, pid) == []


def _children(proc: ProcFS, pid: int) -> Maybe[List[int]]:
    """Those of its main thread."""
    text = proc.text(f"{pid}/task/{pid}/children")
    return text if isinstance(text, Missing) else [int(one) for one in text.split()]


def _own_events(proc: ProcFS, pid: int, tid: int, descriptor: int) -> Optional[_Found]:
    """A wait for events without a time-out: for connections of anybody; or with nothing but files that wake it up, such
    as a pair of sockets: then no event comes from outside unless another process has the other end."""
    names = [name for name, _ in watched(proc, pid, str(descriptor))]
    files = [file_of(proc, pid, name) for name in names if link_of(proc, pid, name) != _INOTIFY]
    if len(files) < len(names):
        return _changes(tid) if not files or only_wake_ups(proc, pid, files) else None
    inodes = {int(file[len("socket:[") : -1]) for file in files if file.startswith("socket:")}
    open_to_all = listening(proc, pid, inodes)
    if open_to_all:
        rest = [file for file in files if file not in {f"socket:[{inode}]" for inode in open_to_all}]
        alone = only_wake_ups(proc, pid, rest)
        return _Wait(
            tid,
            f"{next(iter(open_to_all.values()))}{LISTENING}{'' if alone else ' and more'}",
            Missing("it listens: its other end is any client that connects", Code.ANYBODY),
        )
    if not files and _is_empty(proc, pid, str(descriptor)):
        return Peer(thread=tid, file=NOTHING, processes=(pid,)) if _is_its_own(proc, pid) else None
    if len(files) != 1 and not only_wake_ups(proc, pid, files):
        return None
    file = next((file for file in files if file.startswith("socket:")), files[0] if files else "")
    if file.startswith("socket:"):
        found = _socket(proc, pid, tid, file)
        return found if isinstance(found.end, _End) and found.file.startswith("unix") else None
    return _Wait(tid, file, _End(file, None)) if file.startswith("eventfd") else None


def _is_its_own(proc: ProcFS, pid: int) -> bool:
    """Whether no child of its main thread has an epoll, which it may have inherited; False where nobody can tell."""
    children = _children(proc, pid)
    if isinstance(children, Missing) or len(children) > _MOST_WAITS:
        return False
    files = map(proc.open_files, children)
    return not any(isinstance(some, Missing) or _EPOLL in some for some in files)


def _is_empty(proc: ProcFS, pid: int, name: str) -> bool:
    """Whether the kernel says that this epoll watches no file: another thread would have to add one."""
    text = read_fdinfo(proc, pid, name)
    return "flags:" in text and "tfd:" not in text


# --- sockets ---


def _socket(proc: ProcFS, pid: int, tid: int, file: str, reads: bool = False) -> _Wait:
    inode = int(file[len("socket:[") : -1])
    table = list(socket_rows(proc, pid))
    rows = {ends: found for ends, _, found in table}
    own = next((ends for ends, found in rows.items() if found == inode), None)
    if own is not None:
        text = f"tcp {own[0]} - {own[1]}"
        other = rows.get((own[1], own[0]))
        if other == 0:  # nobody has taken the connection yet: whoever listens should
            port = own[1].rpartition(":")[2]
            places = ((own[1], _ANY[0]), (f"0.0.0.0:{port}", _ANY[0]), (f"[::]:{port}", _ANY[1]))
            other = next((rows[key] for key in places if key in rows), 0)
            text += NOT_ACCEPTED
        away = Missing("its other end is on another host, or in another network namespace")
        unowed = reads and _is_unowed(proc, pid, own, {ends[0] for ends, state, _ in table if state == LISTENS}, rows)
        return _Wait(
            tid,
            text,
            _End(f"socket:[{other}]", None) if other else away,
            unowed=unowed,
            back=f"tcp {own[1]} - {own[0]}",
        )
    name = takes_datagrams(proc, pid, inode) if reads else None
    if name is not None:
        return _Wait(tid, f"{name}, datagrams", Missing("whoever knows its name may send to it", Code.SENDERS))
    known = unix_sockets()
    peer, text = known.peers.get(inode), f"unix {file}"
    if not peer and inode in known.unaccepted:
        peer, text = known.unaccepted[inode], f"{text}{NOT_ACCEPTED}"
    return _Wait(
        tid, text, _End(f"socket:[{peer}]", None) if peer else Missing("the kernel does not name its other end")
    )


def _is_unowed(proc: ProcFS, pid: int, own: Ends, listening_at: Collection[str], rows: Mapping[Ends, int]) -> bool:
    """Whether nothing that it has sent on this connection waits for an answer. Who began to connect asks, who listens
    answers; False where that is not known."""
    ports = {address.rpartition(":")[2] for address in listening_at}
    is_server, is_client = (address.rpartition(":")[2] in ports for address in own)
    if is_server == is_client and (is_server or own[::-1] in rows):
        return False
    if proc.namespace(pid, "net") != proc.namespace(os.getpid(), "net"):
        return False
    carried = traffic([own]).get(own)
    return carried is not None and carried.owes_nothing_to(is_server)


def _ends(wait: _Wait) -> Sequence[_End]:
    return [end for end in (wait.end, *wait.others) if isinstance(end, _End)]


def _holding(wait: _Wait, held: Mapping[str, Sequence[Holder]]) -> Set[int]:
    """The processes that have one of its other ends open."""
    return {pid for end in _ends(wait) for pid, access in held.get(end.file, ()) if access != end.closed_to}


def _peer(proc: ProcFS, wait: _Wait, held: Mapping[str, Sequence[Holder]], whole: bool) -> Peer:
    if isinstance(wait.end, Missing):
        return Peer(thread=wait.tid, file=wait.file, processes=wait.end, unowed=wait.unowed, back=wait.back)
    pids = sorted(_holding(wait, held))
    if not pids and not whole:
        return Peer(
            thread=wait.tid, file=wait.file, processes=Missing("some processes of this host may not be inspected")
        )
    # The other end of what is written to is read; of what is read, it is written.
    unread = tuple(pid for pid in pids if wait.writes and leaves_unread(proc, pid, wait.end.file))
    return Peer(
        wait.tid,
        wait.file,
        tuple(pids),
        *states_and_names(proc, pids),
        unread_by=unread,
        unowed=wait.unowed,
        back=wait.back,
    )
