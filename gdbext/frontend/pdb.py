"""`gdbext pdb`: the terminal's side of `gdbext.rankpdb`: the prompt of the rank that is debugged, in any terminal."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from gdbext.frontend.terminal import Progress, style_for, write_lines
from gdbext.model.errors import NOTHING, OK, GdbextError, NothingFound, UsageError
from gdbext.rankpdb import folder
from gdbext.rankpdb.folder import Member
from gdbext.rankpdb.wire import Message, Wire, connect
from gdbext.render.table import Column, Row, table
from gdbext.render.text import clean_line

_LOOK = 0.2  # seconds between two looks for a prompt
_HISTORY = 1000
_RUNNING = "[s]top it at its next line of Python, let the [o]ther ranks go on, or [l]eave it alone? "


@dataclass(frozen=True)
class _Rank:
    """A rank and what it says of itself."""

    member: Member
    status: Message

    @property
    def at_prompt(self) -> bool:
        return self.status.get("state") == "prompt"


def run(options: argparse.Namespace, progress: Progress) -> int:
    """Open the prompt of a rank, and of the next one, until Ctrl-C. Raises GdbextError."""
    places = _places(options.pid)
    if options.list or options.json:
        return _list(places, options)
    terminal = _Terminal()
    chosen, told, seen = options.rank, False, False
    try:
        while True:
            found = _reachable(places(), options.job)
            if seen and not found:
                progress.say("no rank of the job is left")
                return OK
            seen = seen or bool(found)
            if chosen is not None and found:
                _choose(found, chosen)
            wire = next((wire for wire in map(_open, _prompts(found, chosen)) if wire is not None), None)
            if wire is not None:
                if not terminal.talk(wire):
                    return OK
                told = False
                continue
            if not told:
                whom = "a rank" if chosen is None else f"rank {chosen}"
                progress.say(f"waiting until {whom} comes to a breakpoint_(); Ctrl-C ends this, the ranks run on")
                told = True
            time.sleep(_LOOK)
    except KeyboardInterrupt:
        return OK
    finally:
        terminal.keep_history()


def _places(pid: Optional[int]) -> Any:
    """What lists the folders of jobs: of this user, or of a process, be it another user's or in a container."""
    if pid is None:
        return folder.jobs
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = dict(pair.partition(b"=")[::2] for pair in file.read().split(b"\0"))
    except OSError as error:
        raise GdbextError(f"pid {pid}: {error.strerror}") from None
    named = pairs.get(folder.VARIABLE.encode(), b"").decode("utf-8", "replace") or f"/tmp/gdbext-{owner}"  # noqa: S108
    top = Path(f"/proc/{pid}/root{named}")

    def jobs() -> List[str]:
        return sorted(str(path) for path in top.glob("pdb-*") if any(path.glob(f"*.{pid}.*")))

    return jobs


def _reachable(places: List[str], job: Optional[str]) -> List[_Rank]:
    """The ranks of one job. Raises UsageError when there are several jobs."""
    jobs = {os.path.basename(place)[4:]: place for place in places}
    if job is not None:
        jobs = {name: place for name, place in jobs.items() if name == job}
    groups = {name: ranks for name, ranks in ((name, _ask_all(place)) for name, place in jobs.items()) if ranks}
    if len(groups) > 1:
        raise UsageError(f"several jobs use breakpoints: {', '.join(groups)}", "choose one by --job; --list shows them")
    return next(iter(groups.values()), [])


def _ask_all(place: str) -> List[_Rank]:
    return [_Rank(member, status) for member in folder.members(place) for status in _ask(member, {"status": True})]


def _ask(member: Member, question: Message) -> Iterator[Message]:
    """The one answer, if there is one."""
    wire = _reach(member.path)
    if wire is None:
        return
    try:
        answer = wire.receive(5.0) if wire.send(question) else None
    except socket.timeout:
        answer = None
    wire.close()
    if answer is not None:
        yield answer


def _reach(path: str) -> Optional[Wire]:
    try:
        return connect(path)
    except OSError as error:
        raise GdbextError(f"cannot reach the rank at {path}: {error.strerror}") from None


def _choose(found: List[_Rank], chosen: int) -> None:
    """Tell every rank whose turn it is, also the one that has the prompt now."""
    for rank in found:
        for _ in _ask(rank.member, {"choose": chosen}):
            pass
        if rank.at_prompt and rank.member.rank != chosen and chosen in rank.status.get("waiters", ()):
            for answer in _ask(rank.member, {"terminal": os.getpid(), "heir": chosen}):
                if answer.get("refused") != "handed over":
                    raise GdbextError(f"rank {rank.member.rank} is at a breakpoint: {answer.get('refused')}")


def _prompts(found: List[_Rank], chosen: Optional[int]) -> List[Member]:
    return [rank.member for rank in found if rank.at_prompt and chosen in (None, rank.member.rank)]


def _open(member: Member) -> Optional[Wire]:
    wire = _reach(member.path)
    if wire is not None and wire.send({"terminal": os.getpid()}):
        return wire
    return None


# --- the list ---


def _list(places: Any, options: argparse.Namespace) -> int:
    rows: List[Dict[str, Any]] = []
    for place in places():
        for rank in _ask_all(place):
            rows.append({"job": os.path.basename(place)[4:], **rank.status})
    if options.json:
        write_lines([json.dumps({"schema": 1, "ranks": rows})])
    elif rows:
        style = style_for(sys.stdout, os.environ)
        names = ("job", "rank", "pid", "state", "at")
        columns = [Column(name, right=name in ("rank", "pid")) for name in names] + [Column("", least=10)]
        cells = [[*(clean_line(str(row.get(name, "")), style) for name in names), _whom(row)] for row in rows]
        write_lines(table(columns, [Row(line) for line in cells], style))
    else:
        raise NothingFound("no rank on this host has come to a breakpoint_() yet")
    return OK if rows else NOTHING


def _whom(row: Dict[str, Any]) -> str:
    if row.get("waiters"):
        return f"waited for by ranks {', '.join(map(str, row['waiters']))}"
    return f"for rank {row['for']}" if "for" in row else ""


# --- the terminal ---


class _Terminal:
    """Edits the lines, completes and remembers them; the rank at the other end only sees whole ones."""

    def __init__(self) -> None:
        self._wire: Optional[Wire] = None
        self._found: List[str] = []
        self._style = style_for(sys.stdout, os.environ)
        try:  # prints to the terminal when loaded, so not at the top
            self._readline: Any = importlib.import_module("readline")
        except ImportError:
            self._readline = None
            return
        self._readline.set_completer(self._complete)
        self._readline.parse_and_bind("tab: complete")
        self._history = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "gdbext" / "pdb"
        try:
            self._readline.read_history_file(str(self._history))
        except OSError:
            pass  # the first time

    def keep_history(self) -> None:
        """For the next time; only this user may read it."""
        if self._readline is None or not sys.stdin.isatty():
            return
        try:
            self._history.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._readline.set_history_length(_HISTORY)
            self._readline.write_history_file(str(self._history))
            self._history.chmod(0o600)
        except OSError:
            pass  # a read-only home

    def talk(self, wire: Wire) -> bool:
        """One prompt from its opening to its end. False when nothing more is to be expected."""
        self._wire = wire
        going = True
        while True:
            try:
                message = wire.receive()
            except KeyboardInterrupt:  # the rank is running, or computing what was typed
                going = self._while_running(wire)
                if not going:
                    return False
                continue
            if message is None:
                self._print("gdbext: the rank has ended\n")
                return True
            if "refused" in message:
                raise GdbextError(str(message["refused"]))
            if "out" in message:
                self._print(str(message["out"]))
            if "prompt" in message and not self._answer(wire, str(message["prompt"])):
                going = False
            if "bye" in message:
                self._print(f"gdbext: {message['bye']}\n")
                return going

    def _answer(self, wire: Wire, prompt: str) -> bool:
        """Send what was typed. False at the end of the input."""
        while True:
            try:
                line = input(clean_line(prompt, self._style))
            except KeyboardInterrupt:
                self._print("\n")
                continue
            except EOFError:
                self._print("\n")
                wire.send({"line": None})
                return "Pdb" not in prompt  # in `interact` it leads back to pdb
            wire.send({"line": line})
            return True

    def _while_running(self, wire: Wire) -> bool:
        """Ctrl-C while the rank does not ask for a line. False to leave it."""
        self._print("\n")
        try:
            answer = input(_RUNNING) if sys.stdin.isatty() else "s"
        except (KeyboardInterrupt, EOFError):
            answer = "l"
        if answer.startswith("l"):
            wire.close()
            return False
        wire.send({"release": True} if answer.startswith("o") else {"interrupt": True})
        return True

    def _complete(self, text: str, state: int) -> Optional[str]:
        if state == 0 and self._wire is not None:
            line, begin, end = (
                self._readline.get_line_buffer(),
                self._readline.get_begidx(),
                self._readline.get_endidx(),
            )
            self._found = self._candidates((text, line, begin, end))
        return self._found[state] if state < len(self._found) else None

    def _candidates(self, question: Tuple[str, str, int, int]) -> List[str]:
        assert self._wire is not None
        if not self._wire.send({"complete": list(question)}):
            return []
        try:
            answer = self._wire.receive(2.0)
        except socket.timeout:
            answer = None
        return [clean_line(str(word), self._style) for word in (answer or {}).get("completions", ())]

    def _print(self, text: str) -> None:
        sys.stdout.write("\n".join(clean_line(line, self._style) for line in text.split("\n")))
        sys.stdout.flush()
