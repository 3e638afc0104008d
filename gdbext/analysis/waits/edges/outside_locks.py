"""What a rank waits for outside of its locks: queues, conditions, pipes and sockets, and who has their other end."""

from __future__ import annotations

from typing import List, Optional, Tuple

from gdbext.analysis.progress.own_work import is_at_rest
from gdbext.analysis.progress.running import for_ever, was_woken
from gdbext.analysis.view.job_view import Party, threads_of
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges.one_process import hub_of, is_own
from gdbext.analysis.waits.edges.other_frames import is_exiting
from gdbext.analysis.waits.thread_numbers import STOPPED, Threads, deciding_function
from gdbext.knowledge.causes.wait_kinds import PLAIN_NAME, WAITS
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.model.job import RankSnapshot
from gdbext.model.locks import UNASKED, UNOPENED, Peer
from gdbext.model.missing import Missing
from gdbext.model.text.patterns import regex
from gdbext.model.waits import ALL, ANY, Node

_PLAIN = regex(PLAIN_NAME)
_OUTSIDE = {False: ("elsewhere",), True: ("elsewhere", "lock", "unknown")}
"""Groups of threads whose wait may be one for a file, by whether it is for a lock on it."""
_MOST_HOLDERS = 8
LEFT_BEHIND = "no process that can be seen has the file open"
_NO_LOCAL_HOLDER = {
    UNOPENED: ("unopened", "no process has opened it to read"),
    UNASKED: ("unasked", "no request was ever submitted to it"),
}
"""The link from what a thread waits for to its end, and why nobody is there."""


def draw(drawing: Drawing, party: Party, rank: Node) -> None:
    """A rank outside of communication: its own sleep is an end; a queue, pipe or condition is one step further."""
    if party.kind in ("python-code", "native-compute") or party.judged.rule in OWN_SLEEPS:
        return
    if rank.state in ("progressing", "spinning"):
        return
    row = WAITS[party.kind]
    if row.target == "lock":
        return
    label = _waited_for(party)
    state = "unread" if party.kind == "unknown" else "external"
    node = drawing.resource(row.target, rank.id, label, state)
    drawing.join(rank, node, party.kind, row.strength, drawing.fact(party), row.needs)


def _waited_for(party: Party) -> str:
    name = _call(party)
    return f"{name}()" if name else party.kind


def _call(party: Party) -> str:
    """The call that decides, by the name that programs use."""
    name = deciding_function(party)
    plain = _PLAIN.match(name)
    return plain.group("name") if plain else name


def peers(drawing: Drawing, threads: Threads, process: RankSnapshot) -> None:
    """Who is at the other end of what a thread of the graph waits for."""
    for peer in process.peers:
        party = threads.get(process.index, peer.thread)
        if party is None or isinstance(peer.processes, Missing) or is_at_rest(drawing.view, peer):
            continue
        source = drawing.known(party)
        hub = drawing.find("condition", hub_of(process)) if is_own(process, peer) else None
        # An event loop that nothing but its own process wakes up.
        alone = hub is not None or (len(process.threads) == 1 and peer.processes == (process.pid,))
        if source is None or source.state in ("progressing", "spinning"):
            continue
        if party.thread is not None and was_woken(party.thread):  # it got what it waited for, and waits again
            continue
        if party.group not in _OUTSIDE[peer.lock] and not (party.group == "idle" and alone):
            continue
        call = _call(party)
        label = f"{call}({peer.file})" if call else peer.file
        if peer.lock:  # one for all that wait for it; in another container the same path is another file
            node = drawing.resource("lock", f"{process.host}:{peer.file}:{peer.processes}", label)
        else:
            named = bool(call) and bool(peer.children)
            node = drawing.resource("peer", f"{process.index}:{peer.file}", label, sentence=named)
        if peer.children and is_exiting(party):
            drawing.clear(source)
            drawing.join(source, node, "ends", "proven", drawing.fact(party), ANY)
        else:
            drawing.replace(source, node, party.kind, "proven", drawing.fact(party), ALL if peer.lock else ANY)
        if drawing.waits(node):
            continue
        if hub is not None:
            drawing.join(node, hub, "holds" if peer.lock else "other end", "proven", needs=ANY)
        elif party.judged.idle and alone:
            nobody = drawing.resource("process", node.id, "nothing else can wake it up", "dead")
            drawing.join(node, nobody, "own wake-up", "inferred", needs=ANY)
        else:
            _other_ends(drawing, threads, process, node, peer)


def _other_ends(drawing: Drawing, threads: Threads, process: RankSnapshot, node: Node, peer: Peer) -> None:
    pids = peer.processes if not isinstance(peer.processes, Missing) else ()
    others = [pid for pid in pids if pid != process.pid or (peer.lock and len(process.threads) == 1)]
    if peer.lock and is_own(process, peer):
        _own_holders(drawing, process, node, peer)
    elif peer.file in _NO_LOCAL_HOLDER:
        link, said = _NO_LOCAL_HOLDER[peer.file]
        drawing.join(node, drawing.resource("process", node.id, said, "dead"), link, "proven", needs=ANY)
    elif not pids and peer.lock and not isinstance(peer.processes, Missing):
        drawing.join(node, drawing.resource("process", node.id, LEFT_BEHIND, "dead"), "left behind", "proven")
    elif not others and not peer.lock:
        alone = len(process.threads) == 1  # another thread may be the writer
        name = "no other process has it open" if pids else "no process has it open"
        gone = drawing.resource("process", node.id, name, "dead" if alone else "external")
        drawing.join(node, gone, "other end", "inferred", needs=ANY)
    for pid, name, state in zip(pids, peer.names, peer.states):
        if pid not in others:
            continue
        index = threads.index.get((process.host, pid))
        member = threads.parties.get(index) if index is not None else None
        if member is not None:
            target = drawing.rank(member)
        else:
            target = _process(drawing, threads, (process.host, pid), name, state)
        if peer.lock:
            drawing.join(node, target, "holds", "proven")
        else:
            # Of several that have it open any one may be who should act.
            link = "not read" if member is not None and pid in peer.unread_by and _rests(member) else "other end"
            drawing.join(node, target, link, "proven" if len(others) == 1 else "inferred", needs=ANY)
            if member is None and len(others) == 1:
                _beyond(drawing, threads, process.host, target, peer.then)


def _own_holders(drawing: Drawing, process: RankSnapshot, node: Node, peer: Peer) -> None:
    """Of a lock that the waiting process itself has taken before, by another descriptor: the kernel does not tell which
    of its threads will let go of it. Threads of libraries do not know the file."""
    own = _own_threads(drawing, process.index)
    others = [party for party in own if party.lwp != peer.thread] or own  # alone it waits for itself
    for party in others if len(others) <= _MOST_HOLDERS else ():
        drawing.join(node, drawing.of(party), "holds", "inferred", drawing.fact(party), ANY)


def _own_threads(drawing: Drawing, index: int) -> List[Party]:
    """Those of a process that no library has made for itself."""
    return [one for one in threads_of(drawing.view, index) if one.judged.helper is None and one.thread is not None]


def _rests(party: Party) -> bool:
    """Whether its event loop waits without a limit, and no other thread of it is seen to act."""
    threads = [one for one in party.process.threads if one.frames]
    return party.judged.idle and all(for_ever(one) and not one.switches for one in threads)


def _beyond(drawing: Drawing, threads: Threads, host: Optional[str], other: Node, waits: Tuple[Peer, ...]) -> None:
    """What a process that was not asked for waits for: of a rank with several threads of its own any may be at the
    other end."""
    for peer in () if drawing.waits(other) or (isinstance(other.state, str) and other.state != "external") else waits:
        ends = () if isinstance(peer.processes, Missing) else zip(peer.processes, peer.names, peer.states)
        others = [one for one in ends if one[0] != other.pid]
        if len(others) != 1:
            continue
        pid, name, state = others[0]
        index = threads.index.get((host, pid))
        member = threads.parties.get(index) if index is not None else None
        if member is not None and len(_own_threads(drawing, member.index)) > 1:
            continue
        kind, now = ("lock", "holds") if peer.lock else ("peer", "other end")
        file = drawing.resource(kind, f"{other.id}:{peer.file}", peer.file)
        drawing.join(other, file, "io", "proven", needs=ANY)
        if member is not None:
            target = drawing.rank(member)
        else:
            target = _process(drawing, threads, (host, pid), name, state)
        drawing.join(file, target, now, "proven", needs=ANY)
        if member is None:
            _beyond(drawing, threads, host, target, peer.then)


def _process(drawing: Drawing, threads: Threads, where: Tuple[Optional[str], int], name: str, state: str) -> Node:
    now = "stopped" if state == STOPPED or where in threads.stopped else "dead" if state in ("Z", "X") else "external"
    host, pid = where
    return drawing.add(
        Node(
            id=f"pid:{host}:{pid}" if threads.several_hosts else f"pid:{pid}",
            kind="process",
            label=f"pid {pid} ({name})" if name else f"pid {pid}",
            pid=pid,
            state=now,
        )
    )
