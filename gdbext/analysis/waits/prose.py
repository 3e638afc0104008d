"""A hypothesis in words: the sentence of its row, with the roles filled in."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Dict, List, Mapping, Sequence, Tuple

from gdbext.analysis.failures.fatal_signal import ended_by
from gdbext.analysis.stacks.text_kind import shown_by
from gdbext.analysis.view.job_view import Party, calls_of
from gdbext.analysis.view.places import (
    called_from,
    is_in,
    operation,
    place,
    says_nothing,
    taken_in,
    what,
    what_places,
    where,
)
from gdbext.analysis.view.wording import filled_in, label_list, start, verb, who
from gdbext.analysis.waits.edges.members import UNNAMED
from gdbext.analysis.waits.edges.sent_messages import SAID
from gdbext.knowledge.causes.held_by_frames import INTERRUPTED, SIGNAL_NUMBERS
from gdbext.knowledge.causes.remedies.remedy_constants import SLEEPS, WAITS_FOR_SIGNAL
from gdbext.knowledge.causes.wait_causes import CAUSES
from gdbext.knowledge.causes.wait_kinds import LINKS
from gdbext.knowledge.frames.python.interpreter import BETWEEN_INSTRUCTIONS
from gdbext.knowledge.frames.system.libc import UNTIL_THEN
from gdbext.model.codes import Given
from gdbext.model.job import ONLY
from gdbext.model.text.ranges import ranks
from gdbext.model.waits import Edge, Hypothesis, Node

_ROWS = {row.id: row for row in CAUSES}
_JOINED = re.compile(r"(?i)join|threadpool|executor")
_SLEEPS, _INTERRUPTED, _SIGNALLED = map(re.compile, (SLEEPS, INTERRUPTED, WAITS_FOR_SIGNAL))
_CALLED_BETWEEN = re.compile(BETWEEN_INSTRUCTIONS)
_HELD = ("holds", "ended", "forked")
_MOST_STEPS, _MOST_SIDES = 8, 4
_STATES = {"dead": "gone", "stopped": "stopped by a signal: kill -CONT resumes it"}


def summary(one: Hypothesis, culprits: Sequence[Party], victims: Sequence[Party], awaited: str = "") -> str:
    """Two sentences for a person. `awaited`: which thread the first culprit waits for."""
    roles = {**_of_culprits(one, culprits, victims), **_of_victims(one, culprits, victims)}
    turn = _circle_of(one)
    roles["story"] = chain_text(turn)
    roles["Circle"] = _heading(turn)
    roles["behind"], roles["have_behind"] = _behind(culprits, victims)
    roles["Circle_end"] = _circle_end(one, turn, culprits, victims)
    root = one.chain[-1].target if one.chain else one.roots[0]
    roles["root"] = root.label
    inside = ", a destructor" if "~" in root.label else ", a shutdown function"
    during = inside if root.label in roles["where"] else f", during shutdown ({root.label})"
    roles["during"] = f"{during}, {roles['ending']}" if roles["ending"] else during
    if culprits and root.kind == "object" and root.label not in calls_of(culprits[0]):  # another thread ends something
        roles["during"] = f" {roles['ending']}, while another thread waits for it to end, in {root.label}"
    shown = shown_by(culprits[0].process, culprits[0].thread) if culprits else None
    ended = shown is not None and bool(shown.row.when)
    roles["One_look"] = f"A single {_look((*culprits, *victims))}"
    roles["Unclear"] = "" if ended else f"{roles['One_look']} cannot show whether this wait will ever end."
    roles["Awaited"] = awaited
    roles["gone"] = f"{root.label} has ended" if root.pid is not None else root.label
    roles.update(_of_waiter(one, victims))
    state = one.roots[0].state or ""
    roles["state"] = _STATES.get(state, state)
    return filled_in(_ROWS[one.row].says, roles).replace("  ", " ").strip()


def _of_culprits(one: Hypothesis, culprits: Sequence[Party], victims: Sequence[Party]) -> Dict[str, str]:
    subjects = list(culprits) or list(victims)
    name = who(subjects) if subjects else "an unknown rank"
    return {
        "Culprits": start(name),
        "culprits": name,
        "are": verb(subjects, "is", "are"),
        "are_forked": verb(subjects, "is a forked child", "are forked children"),
        "have": verb(subjects, "has", "have"),
        "do": verb(subjects, "does", "do"),
        "open": verb(subjects, "opens", "open"),
        "tear": verb(subjects, "tears", "tear"),
        "wait_c": verb(subjects, "waits", "wait"),
        "where": where(subjects[0]) if subjects else "a place that could not be read",
        "ending": _ending(subjects[0]) if subjects else "",
        "wait_there": verb(subjects, "sleeps", "sleep")
        if subjects and not _ending(subjects[0])
        else verb(subjects, "waits", "wait"),
        "torn": "a communicator"
        if subjects and subjects[0].kind == "nccl-destroy-abort"
        else "a communicator or a context",
        "Culprit_is_in": f"{start(who(subjects[:1]))} {is_in(subjects[:1])} {where(subjects[0])}." if subjects else "",
        "Culprits_and_absent": start(label_list(_away(one, culprits) or ["a member is missing"])),
        "sides": _sides([*culprits, *victims]),
        "different": _different([*culprits, *victims]),
        "Same": _same(one, [*culprits, *victims]),
        "Both": "Each side waits for the other: their order differs, or one of these calls has no counterpart."
        if one.weakest in ("named", "proven")
        else "If all of them belong to both communicators, each side waits for the other.",
    }


def _same(one: Hypothesis, parties: Sequence[Party]) -> str:
    """Why ranks in different collectives cannot go on."""
    if len({party.communicator for party in parties} - {None}) > 1:
        return "Each waits in one communicator for a rank that is in another one, so none of them can complete."
    if one.weakest in ("named", "proven"):
        return "It is the same communicator, so none of them can complete."
    return "If it is the same communicator, none of them can complete."


def _look(culprits: Sequence[Party]) -> str:
    return "sample" if any(party.process.given is Given.LIVE for party in culprits) else "dump"


def _ending(party: Party) -> str:
    """What a shutdown waits for; nothing where it sleeps."""
    if party.kind in ("mutex", "gil"):
        return "for a lock" if party.kind == "mutex" else "for the GIL"
    if _sleeps(party):
        return ""
    if party.judged.rule in UNTIL_THEN:
        return UNTIL_THEN[party.judged.rule]
    calls = list(calls_of(party))
    if any(map(_SIGNALLED.match, calls)) and not any(map(_JOINED.search, calls)):
        return "for another thread to signal it"
    return "for a thread or process to end"


def _sleeps(party: Party) -> bool:
    return _SLEEPS.match(next(iter(calls_of(party)), "")) is not None


def _behind(culprits: Sequence[Party], victims: Sequence[Party]) -> Tuple[str, str]:
    """Who has not reached the collective: the rank, where the culprit is a thread that does not call it itself."""
    if any(party.is_thread for party in culprits):
        processes = {party.process.index: party.process.label for party in culprits}
        if len(processes) == 1 and not any(party.process.index in processes for party in victims):
            return next(iter(processes.values())), "has"
    return who(culprits) if culprits else "an unknown rank", verb(culprits, "has", "have")


def _of_victims(one: Hypothesis, culprits: Sequence[Party], victims: Sequence[Party]) -> Dict[str, str]:
    subjects = list(victims) or list(culprits)
    wait = verb(subjects, "waits", "wait")
    waits = f"{start(who(subjects))} {wait} for that in {what_places(subjects)}." if victims else ""
    return {
        "Victims": start(who(subjects)) if subjects else "Other ranks",
        "victims": who(subjects) if subjects else "other ranks",
        "wait": wait,
        "what": what(subjects) if subjects else "something",
        **_awaited(one, subjects),
        "Who_was_read": _who_was_read(subjects),
        "what_where": what_places(subjects) if subjects else "something",
        "Victims_wait": waits or ("None of them can proceed." if one.circle else ""),
        "are_all": verb([*culprits, *victims], "is", "are"),
        "Everybody": start(who([*culprits, *victims])) if subjects else "No rank",
    }


def _who_was_read(subjects: Sequence[Party]) -> str:
    """That nobody is seen to have the GIL, which says little of a process one thread of which was read."""
    if any(len(party.process.threads) > 1 for party in subjects):
        return "No thread that was read holds it or runs Python code."
    pasted = all(party.process.given is Given.TEXT for party in subjects)
    return "The text shows no other thread." if pasted else "No other thread was read."


def _awaited(one: Hypothesis, subjects: Sequence[Party]) -> Dict[str, str]:
    """`in all_reduce`; of ranks that only wait for their GPU the collective that it runs: `for all_reduce`."""
    called = next((edge.target.label for edge in one.chain if edge.target.kind == "collective"), "")
    named = any(party.judged.collective or party.group == "collective" for party in subjects)
    if called and not named and called != UNNAMED:
        return {"in_what": f"for {called}", "it": "it"}
    return {
        "in_what": f"in {what(subjects) if subjects else 'something'}",
        "it": "it" if named or called != UNNAMED else "the collective",
    }


def _of_waiter(one: Hypothesis, victims: Sequence[Party]) -> Dict[str, str]:
    """Who waits for the end itself, and the others that wait for that."""
    waiter = next((edge.source for edge in reversed(one.chain) if edge.source.kind in ("rank", "thread")), None)
    name = "an unknown rank" if waiter is None else waiter.label
    if waiter is not None and waiter.kind == "thread":
        name = _name(waiter, True)
    others = [party for party in victims if waiter is None or party.index != waiter.process]
    return {
        "Waiter": start(name),
        "through": one.chain[-1].source.label if one.chain else "nothing",
        "Others_wait": f"{start(who(others))} {verb(others, 'waits', 'wait')} for that." if others else "",
    }


def _away(one: Hypothesis, culprits: Sequence[Party]) -> List[str]:
    """Those who do not come, and why."""
    pieces = [f"{ranks(one.absent)} {'has' if len(one.absent) == 1 else 'have'} no process"] if one.absent else []
    stopped = [party for party in culprits if party.group == "stopped"]
    dead = [party for party in culprits if party.group in ("gone", "fatal")]
    rest = [party for party in culprits if party.group not in ("stopped", "gone", "fatal")]
    if stopped:
        pieces.append(f"{who(stopped)} {verb(stopped, 'is', 'are')} stopped by a signal")
    if dead:
        pieces.append(_dead(dead))
    if rest:
        pieces.append(f"{who(rest)} {verb(rest, 'is', 'are')} in {where(rest[0])}")
    return pieces


def _dead(dead: Sequence[Party]) -> str:
    """Where it died, as long as its stack shows that."""
    if any(party.group != "fatal" or party.thread is None for party in dead):
        return f"{who(dead)} {verb(dead, 'has', 'have')} ended"
    return f"{who(dead)} died or {verb(dead, 'is', 'are')} dying in {where(dead[0])}"


def _different(parties: Sequence[Party]) -> str:
    if all(party.kind == "store-wait" for party in parties):
        return "calls that wait for a key of the store, which only another rank sets"
    if not all(party.judged.collective for party in parties):
        return "different calls of the library"
    if {party.judged.collective for party in parties} == {"send", "recv"}:
        return "sends and receives that do not match (peer, tag or order differ, or an earlier message was not sent)"
    one = len({party.judged.collective for party in parties}) == 1
    if one and any(party.other_side is not None for party in parties):
        return "messages that wait for one another"
    if one and parties[0].judged.collective in _ONE_SIDE:
        return _ONE_SIDE[parties[0].judged.collective]
    roots = len({party.root for party in parties}) > 1 and len({party.count for party in parties}) == 1
    return f"the same collective with different {'roots' if roots else 'sizes'}" if one else "different collectives"


def _sides(parties: Sequence[Party]) -> str:
    """`rank 1 in all_gather; ranks 0,2 in all_reduce`, the smaller side first."""
    groups: Dict[Tuple[object, ...], List[Party]] = {}
    alike = len({party.judged.collective for party in parties}) == 1
    roots = {party.root for party in parties} if alike else set()
    for party in parties:
        said = _operation(party)
        outer = party.frame(party.judged.engine_frame) if alike and said in SAID else None
        said = called_from(party, said, party.frame(party.judged.frame), outer) if outer is not None else said
        said = f"{said} with root {party.root}" if len(roots) > 1 and party.root is not None else said
        groups.setdefault((said, party.count, party.communicator), []).append(party)
    several = len({party.communicator for party in parties}) > 1
    pieces = []
    for (name, count, communicator), members in sorted(groups.items(), key=lambda item: len(item[1]))[:_MOST_SIDES]:
        size = f" of {count} elements" if count is not None else ""
        kind = "group" if members[0].by_group else "communicator"
        group = f" of {kind} {communicator}" if several and communicator else ""
        pieces.append(f"{who(members)} in {name}{size}{group}")
    return "; ".join(pieces)


def _operation(party: Party) -> str:
    other = party.other_side
    return operation(party) if other is None else f"{SAID[party.judged.collective or '']} rank {other}"


# --- circles of threads ---


def _circle_of(one: Hypothesis) -> Tuple[Edge, ...]:
    """The edges of the chain from where it first comes to a node that it reaches again."""
    last = one.chain[-1].target.id if one.chain else ""
    first = next((number for number, edge in enumerate(one.chain) if edge.source.id == last), 0)
    return one.chain[first:]


def _threads(turn: Sequence[Edge]) -> List[Node]:
    return [edge.source for edge in turn if edge.source.kind in ("rank", "thread")]


def _heading(turn: Sequence[Edge]) -> str:
    """`Two threads of rank 0 wait for each other`."""
    threads = _threads(turn)
    processes = list(dict.fromkeys(_process(one) for one in threads if one.owner or one.kind == "rank"))
    place = " and ".join(processes[:_MOST_SIDES])
    if any(edge.kind == "left" for edge in turn):
        return f"No thread of {place} is left that could wake another one"
    others = _unread_processes(turn)
    if others:
        return f"{start(label_list([*processes, *others]))} wait for each other"
    of = "" if place == ONLY else f" of {place}"
    if len(threads) == 1:
        several = any(edge.source.kind == "unknown" for edge in turn)
        return f"Two threads{of} wait for each other" if several else f"Self-deadlock{of.replace('of', 'in', 1)}"
    count = {2: "Two"}.get(len(threads), f"{len(threads):,}")
    words = "wait for each other" if len(threads) == 2 else "wait for each other in a circle"
    return f"{count} threads{of} {words}"


def _unread_processes(turn: Sequence[Edge]) -> List[str]:
    """Those on the circle of which only the kernel told what they wait for."""
    return [edge.source.label for edge in turn if edge.source.kind == "process"]


def _process(one: Node) -> str:
    return one.owner or one.label


def _circle_end(one: Hypothesis, turn: Sequence[Edge], culprits: Sequence[Party], victims: Sequence[Party]) -> str:
    count = len(_threads(turn)) + len(_unread_processes(turn))
    first = turn[0].source.thread if turn else None
    party = next((party for party in culprits if party.id == first), None)
    several = len({one.process for one in _threads(turn)}) > 1
    alone = count == 1 and all(edge.source.kind != "unknown" for edge in turn)
    name = "the thread" if alone else _name(turn[0].source, several) if turn else ""
    place = f"{name} is in {taken_in(party)}" if party is not None else ""
    if one.weakest == "assumed":
        told = "That it holds the lock is inferred from its stack."
        told = told if alone else "Who holds which lock is inferred from the stacks."
        told = f"{_broken_into(party)}{told}" if alone and party is not None else told
        return " ".join(filter(None, [f"{start(place)}." if place else "", told]))
    if not victims:
        nobody = "The thread cannot" if count == 1 else "Neither can" if count == 2 else "None of them can"
        text = f"{nobody} proceed{'; ' if place else ''}{place.replace('the thread', 'it', 1) if alone else place}."
        return text + (_between_instructions(party) if alone and party is not None else "")
    blamed = next(map(_process, _threads(turn)), who(culprits))
    return (
        f"{start(who(victims))} {verb(victims, 'waits', 'wait')} in {where(victims[0])}, and {blamed} never gets there."
    )


def _between_instructions(party: Party) -> str:
    """What Python has interrupted to call what waits here: a signal handler, a callback or a finaliser."""
    calls = party.calls
    at = next((number for number, frame in enumerate(calls) if _CALLED_BETWEEN.match(frame.function or "")), None)
    outer = (frame for frame in calls[at + 1 :] if frame.language == "python") if at is not None else ()
    frame = next(iter(outer), None)
    if frame is None:
        return ""
    return (
        f" Python has interrupted {place(frame)} for a signal handler, a callback or a finaliser: most likely the "
        "interrupted code holds what is waited for."
    )


def _broken_into(party: Party) -> str:
    """Which signal interrupted what, and whose handler it runs, where the lock is asked for in the handler."""
    calls = party.calls
    at = next((number for number, frame in enumerate(calls) if _INTERRUPTED.match(frame.function or "")), 0)
    behind = [frame for frame in calls[at + 1 :] if not says_nothing(frame)]
    inside = {frame.function for frame in calls[:at] if not says_nothing(frame)}
    again = next((frame for frame in behind if frame.function in inside), None)
    if not at or again is None:
        return ""
    values = (frame.captures.get(name) for frame in reversed(calls[:at]) for name in SIGNAL_NUMBERS)
    number = next((value for value in values if isinstance(value, int)), None)
    signal = "A signal" if number is None else f"Signal {number}{ended_by(-number)}"
    return f"{signal} interrupted it in {place(again)}; its handler, {place(calls[at - 1])}, asked for the lock again. "


_ONE_SIDE = {
    "recv": "calls that wait for a message, and none of them sends",
    "send": "calls that send a message, and none of them receives",
}
_NEEDS = ("collective", "rendezvous")
_BARE = ("mutex", "rwlock", "reader-writer lock", "futex", "semaphore", "condition", "lock")


def chain_text(way: Sequence[Edge]) -> str:
    """`thread 1 waits for mutex 0x55.. that thread 2 holds; thread 2 waits for the end of thread 3`."""
    several = len({one.process for edge in way for one in (edge.source, edge.target) if one.process is not None}) > 1
    pieces: List[str] = []
    around = way[:1] if way and way[-1].target.id == way[0].source.id else ()
    for edge, following in zip_longest(way, (*way[1:], *around)):
        if edge.kind in (*_HELD, "left"):
            continue
        subject = "that thread" if edge.source.kind == "unknown" and pieces else _name(edge.source, several)
        if edge.kind == "other end":
            if pieces and edge.source.kind == "peer" and not edge.source.sentence:
                pieces[-1] += f", whose other end {_name(edge.target, several)} has"
            continue
        if edge.source.kind in _NEEDS:
            pieces.append(f"{edge.source.label} needs {_name(edge.target, several)}")
            continue
        if edge.target.kind in ("thread", "rank"):
            pieces.append(f"{subject} waits for the end of {_name(edge.target, several)}")
        elif following is None or following.kind not in _HELD:
            pieces.append(f"{subject} waits for {_thing(edge.target)}")
        elif following.kind != "holds":
            why = following.target.label
            why = why if following.target.sentence else f"{why} {LINKS[following.kind]}"
            pieces.append(f"{subject} waits for {_thing(edge.target)}: {why}")
        elif following.target.id == edge.source.id:
            own = " that" if _thing(edge.target).startswith("a ") else ", which"
            pieces.append(f"{subject} waits for {_thing(edge.target)}{own} it already holds")
        else:
            pieces.append(f"{subject} waits for {_thing(edge.target)} that {_name(following.target, several)} holds")
    shown = pieces[:_MOST_STEPS]
    if len(shown) < len(pieces):
        shown.append(f"and so on over {len(pieces) - len(shown):,} more")
    return "; ".join(shown)


def chain_with_end(way: Sequence[Edge], parties: Mapping[str, Party]) -> str:
    """A way in words, and what the last thread of it does, where it waits for no other."""
    if not way:
        return "nothing holds it up any more"
    end = way[-1].target
    if end.kind == "lock" and end.state == "progressing":
        return f"{chain_text(way)}, which changes hands"
    last = parties.get(end.id)
    if last is None or any(edge.source.id == end.id for edge in way):
        return chain_text(way)
    return f"{chain_text(way)}; {_name(end, end.process != way[0].source.process)} is in {where(last)}"


def _name(one: Node, several: bool) -> str:
    """A thread by its number, also where it is the one that decides in its rank."""
    if one.thread is None:
        return one.label
    number = one.label if one.kind == "thread" else f"thread {one.thread}"
    head, own = number[: len(f"thread {one.thread} ")], number[len(f"thread {one.thread} ") :]
    if own and head == f"thread {one.thread} " and "(" not in own:
        number = f"{head}({own})"
    return f"{number} of {_process(one)}" if several else number


def _thing(one: Node) -> str:
    """`mutex 0x55..`; one that has neither name nor address is `a mutex`."""
    return f"a {one.label}" if one.label in _BARE else one.label
