"""Waits that a whole stack shows and no single call: forked children, ranks that let the first one work alone, ..."""

from __future__ import annotations

from typing import Dict, List

from gdbext.analysis.progress.pool_tasks import inside_task, waits_for_result
from gdbext.analysis.progress.slow import has_its_lock
from gdbext.analysis.view.job_view import JobView, Party, threads_of
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges import by_frames
from gdbext.analysis.waits.edges.other_frames import in_nccl, is_starved, left_by_fork, waits_for_leader


def before_general_rules(drawing: Drawing) -> None:
    """Those that leave nothing for the general rules to add."""
    _leader_first(drawing)
    _starved(drawing)


def after_general_rules(drawing: Drawing) -> None:
    """Those that stand beside them."""
    _forked(drawing)
    _pools(drawing)
    _local_barriers(drawing)
    _threads_apart(drawing)
    by_frames.lock_files(drawing)
    by_frames.end_waits(drawing)


def _leader_first(drawing: Drawing) -> None:
    view = drawing.view
    waiting = [party for party in view.parties if waits_for_leader(party)]
    if not waiting or len(waiting) < len([party for party in view.parties if party.group != "elsewhere"]):
        return
    node = drawing.resource("collective", "leader", "the first rank's own work")
    for party in waiting:
        drawing.join(drawing.rank(party), node, party.kind, "assumed", drawing.fact(party))
        drawing.taken.add(party)
    first = [party for party in view.parties if party.process.rank == 0 and party not in drawing.taken]
    if 0 in view.snapshot.absent:
        target = drawing.absent(0)
    elif first:
        target = drawing.rank(first[0])
        drawing.taken.add(first[0])
    else:
        target = drawing.resource("unknown", "leader", "the first rank", "unread")
    drawing.join(node, target, "leader first", "assumed")


def _starved(drawing: Drawing) -> None:
    parties = drawing.view.parties
    if len(parties) == 1 and is_starved(parties[0]):
        node = drawing.resource("collective", "next", "the next collective")
        drawing.join(node, drawing.rank(parties[0]), "next collective", "assumed", drawing.fact(parties[0]))
        drawing.taken.add(parties[0])


def _forked(drawing: Drawing) -> None:
    for party in drawing.view.parties:
        strength = left_by_fork(drawing.view, party)
        if strength is not None:
            rank = drawing.rank(party)
            gone = drawing.resource("thread", f"parent:{party.index}", "a thread of its parent", "dead")
            if any(edge.strength == "proven" for edge in drawing.leaving(rank)):
                continue
            drawing.clear(rank)
            drawing.join(rank, gone, "forked", strength, drawing.fact(party))


def _pools(drawing: Drawing) -> None:
    """Who waits for the result of a task, and has the lock that is a file, which a task of a pool asks for."""
    asking = [one for one in drawing.view.parties if any(peer.lock for peer in one.process.peers) and inside_task(one)]
    for party in drawing.view.parties if asking else ():
        if not waits_for_result(party) or (party.thread is not None and party.thread.switches):
            continue
        others = [one for one in asking if one.index != party.index and one.process.title == party.process.title]
        tasks = [one for one in others if has_its_lock(one, {party.process.pid})]
        if not tasks:
            continue
        rank = drawing.rank(party)
        queue = drawing.resource("queue", rank.id, "the result of a task")
        drawing.clear(rank)
        drawing.join(rank, queue, party.kind, "inferred", drawing.fact(party))
        for one in tasks:
            drawing.join(queue, drawing.rank(one), "other end", "inferred")


def _local_barriers(drawing: Drawing) -> None:
    view = drawing.view
    for process, judged in zip(view.snapshot.processes, view.processes):
        for position in judged.positions_where(lambda one: one.rule == "nccl-cpu-barrier"):
            one = judged.threads[position]
            party = Party(
                process=process, thread=process.threads[position], judged=one, group="collective", is_thread=True
            )
            node = drawing.resource("collective", f"local:{process.index}", "the ranks of this process")
            drawing.clear(drawing.of(party))
            drawing.join(drawing.of(party), node, one.kind, "named", drawing.fact(party))
            rank = drawing.resource("unknown", f"local:{process.index}", "a rank of this process", "unread")
            drawing.join(node, rank, "local rank", "assumed")
            return


def _threads_apart(drawing: Drawing) -> None:
    """Threads of one process in calls of NCCL for different purposes: each can hold what the other needs to launch."""
    for process in drawing.view.processes:
        inside = _in_nccl(drawing.view, process.index)
        purposes: Dict[object, Party] = {}
        for one in inside:
            purposes.setdefault((one.group, one.judged.collective, one.judged.communicator), one)
        tearing = any(one.group == "teardown" for one in inside)  # with one other call that is a teardown in flight
        if len(purposes) <= 1 + tearing or not any(one.group in ("collective", "launch") for one in inside):
            continue
        several = len({one.judged.communicator for one in inside}) > 1 or len(purposes) > 2
        strength = "inferred" if several else "assumed"
        nodes = [
            drawing.resource("collective", f"{process.index}:{number}", one.judged.collective or one.kind)
            for number, one in enumerate(purposes.values())
        ]
        for number, (node, one) in enumerate(zip(nodes, purposes.values())):
            thread = drawing.of(one)
            for edge in drawing.leaving(thread):
                if edge.target.kind == "collective":  # its peers wait for what it cannot launch
                    drawing.join(edge.target, thread, "other communicator", strength)
            drawing.clear(thread)
            drawing.join(thread, node, one.kind, "named", drawing.fact(one))
            other = list(purposes.values())[number - 1]
            drawing.join(node, drawing.of(other), "other communicator", strength)


def _in_nccl(view: JobView, index: int) -> List[Party]:
    return [one for one in threads_of(view, index, lambda one: one.helper is None) if in_nccl(one)]
