"""`gdbext pdb`: the terminal's side of `gdbext.rankpdb`: the prompt of the rank that is debugged, in any terminal."""

from __future__ import annotations

import argparse
import os
import socket
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

from gdbext.capture.python.runtime import interpreter_of
from gdbext.cli.answer_output import print_document
from gdbext.cli.pdb import remote_exec
from gdbext.cli.pdb.inject import inject
from gdbext.cli.pdb.prompt_terminal import Terminal
from gdbext.cli.terminal import Progress
from gdbext.collect.cleanup_on_signals import tidy_end
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.errors import OK, GdbextError, NothingFound, UsageError, refused_as
from gdbext.model.exit_status import ALL, NONE, exit_status
from gdbext.model.missing import Missing
from gdbext.model.rank_prompts import RankPrompts
from gdbext.rankpdb import folder
from gdbext.rankpdb.folder import Member
from gdbext.rankpdb.wire import Message, Wire, connect
from gdbext.render import Style, dumps
from gdbext.render.safe_text import clean_line
from gdbext.render.table import Column, Row, table

_LOOK = 0.2  # seconds between two looks for a prompt


@dataclass(frozen=True)
class Rank:
    """A rank and what it says of itself."""

    member: Member
    status: Message

    @property
    def at_prompt(self) -> bool:
        return self.status.get("state") == "prompt"


def run(options: argparse.Namespace) -> int:
    """Open the prompt of a rank, and of the next one, until Ctrl-C. Raises GdbextError."""
    options.pid = options.pid or options.also_pid
    places = _places(options.pid)
    if options.list or options.json or options.json_file or options.output:
        return _list(places, options)
    if options.release:
        return _release(_reachable(places(), options.job), options.rank, Progress(options.quiet))
    if options.inject or (options.pid and not places() and _takes_texts(options.pid)):
        _put(places, options, Progress(options.quiet))
        return OK
    prompt_ranks(lambda: _reachable(places(), options.job), options.rank, Progress(options.quiet))
    return OK


def _takes_texts(pid: int) -> bool:
    found = interpreter_of(pid)
    return not isinstance(found, Missing) and found.version >= remote_exec.SINCE


def _put(places: Any, options: argparse.Namespace, progress: Progress) -> None:
    """A breakpoint in ranks that have none; it goes with us."""
    with tidy_end():  # not at the prompt: a signal that comes right before a read would be noticed after it
        standing = inject(options, progress)

    def ranks() -> List[Rank]:
        return [rank for place in places() for rank in _ask_all(place) if rank.member.pid in standing.pids]

    try:
        prompt_ranks(ranks, None, progress, lambda: standing.is_over() and not any(rank.at_prompt for rank in ranks()))
    finally:
        standing.close()


def prompt_ranks(
    ranks: Callable[[], List[Rank]], chosen: Optional[int], progress: Progress, over: Callable[[], bool] = lambda: False
) -> bool:
    """Open one prompt after the other of the job whose ranks `ranks` finds. False when nothing is left to wait for,
    True when the user left (quit, Ctrl-C)."""
    terminal = Terminal()
    announced = seen = False
    informed: Set[str] = set()
    try:
        while not over():
            found = ranks()
            if seen and not found:
                progress.say("no rank of the job is left")
                break
            seen = seen or bool(found)
            if chosen is not None and found:
                _choose(found, chosen, informed)
            wire = next((wire for wire in map(_open, _prompts(found, chosen)) if wire is not None), None)
            if wire is not None:
                if not terminal.serve_prompt(wire):
                    return True
                announced = False
                continue
            if not announced:
                target = "a rank" if chosen is None else f"rank {chosen}"
                progress.say(f"waiting for {target} to reach a breakpoint_(); Ctrl-C only ends the wait")
                announced = True
            terminal.pause(_LOOK)
    except KeyboardInterrupt:
        return True
    finally:
        terminal.close()
    return False


def _places(pid: Optional[int]) -> Any:
    """What lists the folders of jobs: of this user, or of a process, be it another user's or in a container."""
    if pid is None:
        return folder.jobs
    proc = ProcFS()
    owner, environ, status = proc.owner(pid), proc.environ(pid), proc.status(pid)
    if isinstance(owner, Missing):
        raise GdbextError(f"pid {pid}: {owner.reason}")
    named = environ.get(folder.VARIABLE) if not isinstance(environ, Missing) else None
    inside = str(pid) if isinstance(status, Missing) else status.get("NSpid", str(pid)).split()[-1]

    def jobs() -> List[str]:
        tops = folder.folders(owner, f"/proc/{pid}/root", named)
        return [place for top in tops for place in folder.jobs_in(top) if folder.has_socket(place, inside)]

    return jobs


def ranks_below(parents: Callable[[], Set[int]]) -> List[Rank]:
    """The ranks of this user that are among these processes."""
    pids = parents()
    return [rank for place in folder.jobs() for rank in _ask_all(place) if rank.member.pid in pids]


def _reachable(places: List[str], job: Optional[str]) -> List[Rank]:
    """The ranks of one job. Raises UsageError when there are several jobs."""
    groups: Dict[str, List[Rank]] = {}
    for place in places:  # a job has several when its ranks could not use the same folder
        name, ranks = os.path.basename(place)[4:], _ask_all(place)
        if ranks and job in (None, name):
            groups.setdefault(name, []).extend(ranks)
    if len(groups) > 1:
        raise UsageError(f"several jobs use breakpoints: {', '.join(groups)}", "choose one by --job; --list shows them")
    return next(iter(groups.values()), [])


def _ask_all(place: str) -> List[Rank]:
    asked = ((member, _answer(wire, {"status": True})) for member, wire in folder.connect_all(place))
    return [Rank(member, status) for member, status in asked if status is not None]


def _ask(member: Member, question: Message) -> Optional[Message]:
    wire = _reach(member.path)
    return None if wire is None else _answer(wire, question)


def _answer(wire: Wire, question: Message) -> Optional[Message]:
    try:
        return wire.receive(5.0) if wire.send(question) else None
    except socket.timeout:
        return None
    finally:
        wire.close()


def _reach(path: str) -> Optional[Wire]:
    with refused_as(f"cannot reach the rank at {path}"):
        return connect(path)


def _choose(found: List[Rank], chosen: int, informed: Set[str]) -> None:
    """Tell every rank once whose turn it is, and the one that has the prompt now to hand it over."""
    for rank in found:
        if rank.member.path not in informed and _ask(rank.member, {"choose": chosen}) is not None:
            informed.add(rank.member.path)
        if rank.at_prompt and rank.member.rank != chosen and chosen in rank.status.get("waiters", ()):
            answer = _ask(rank.member, {"terminal": os.getpid(), "heir": chosen})
            if answer is not None and answer.get("refused") != "handed over":
                raise GdbextError(f"rank {rank.member.rank} is at a breakpoint: {answer.get('refused')}")


def _prompts(found: List[Rank], chosen: Optional[int]) -> List[Member]:
    return [rank.member for rank in found if rank.at_prompt and chosen in (None, rank.member.rank)]


def _open(member: Member) -> Optional[Wire]:
    wire = _reach(member.path)
    return wire if wire is not None and wire.send({"terminal": os.getpid()}) else None


def _release(found: List[Rank], chosen: Optional[int], progress: Progress) -> int:
    """Let the ranks go that wait for a prompt, whatever the rank that has it does now."""
    done = False
    for rank in found:
        answer = _ask(rank.member, {"release": True}) if chosen in (None, rank.member.rank) else None
        if answer is not None and answer.get("released") is not None:
            released = ", ".join(map(str, answer["released"])) or "no rank of this host"
            progress.say(f"rank {rank.member.rank} no longer holds other ranks; released: {released}")
            done = True
    if not done:
        raise NothingFound("no rank of this host holds others at a breakpoint_()", "gdbext pdb --list shows who waits")
    return OK


# --- the list ---


def _list(places: Any, options: argparse.Namespace) -> int:
    rows: List[Dict[str, Any]] = []
    for place in places():
        for rank in _ask_all(place):
            rows.append({"job": os.path.basename(place)[4:], **rank.status})
    if not rows and not options.json:
        raise NothingFound("no rank on this host has reached a breakpoint_() yet")
    print_document(lambda: dumps(RankPrompts(tuple(rows))), lambda style: _table(rows, style), options)
    return exit_status(False, ALL if rows else NONE)


def _table(rows: Sequence[Dict[str, Any]], style: Style) -> List[str]:
    names = ("job", "rank", "pid", "state", "at")
    columns = [Column(name, right=name in ("rank", "pid")) for name in names] + [Column("", least=10)]
    cells = [[*(clean_line(str(row.get(name, "")), style) for name in names), _waiting_for(row)] for row in rows]
    return table(columns, [Row(line) for line in cells], style)


def _waiting_for(row: Dict[str, Any]) -> str:
    if row.get("waiters"):
        return f"waited for by ranks {', '.join(map(str, row['waiters']))}"
    return f"for rank {row['for']}" if "for" in row else ""
