"""llm-break, llm-continue: a breakpoint for some ranks of a job; the others are held with them and go on with them."""

from __future__ import annotations

import re
from argparse import Namespace
from dataclasses import dataclass
from typing import Optional, Protocol, Tuple, cast

from gdbext.commands.argument_parser import option_names
from gdbext.commands.argument_types import OTHERS
from gdbext.commands.chosen_ranks import pick_all
from gdbext.commands.declared.rank_breakpoints import BREAK, LIMIT, WAIT
from gdbext.commands.session_port import Session
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.rank_breakpoints import BreakTable

ACTIONS = ("stop", "log", "report")


@dataclass(frozen=True)
class BreakOptions:
    """What `llm-break LOCATION` was given."""

    location: str
    pids: Optional[Tuple[int, ...]] = None  # None: all ranks
    condition: Optional[str] = None
    count: int = 1
    action: str = "stop"  # or "log", "report"
    limit: float = LIMIT  # seconds
    others: str = "stop"  # or "hold", "run"
    wait: float = WAIT  # seconds that the others may take to come to the place
    expressions: Tuple[str, ...] = ()  # what "log" says
    ranks: Optional[Tuple[int, ...]] = None  # the numbers of `pids`, where all have one


class BreakPort(Protocol):
    """Breakpoints over the inferiors of this gdb. `inside_gdb/rank_breakpoints/rank_breakpoints.py` is the real one."""

    def add(self, options: BreakOptions) -> BreakTable:
        """Set one. Raises GdbextError."""

    def table(self) -> BreakTable:
        """All of them, and where the ranks are."""

    def delete(self, number: Optional[int]) -> BreakTable:
        """Take one away, or all. Raises GdbextError."""

    def go_on(self) -> None:
        """Resume all ranks; returns when one has stopped again."""


class BreakSession(Session, Protocol):
    """The session of these commands."""

    breaks: BreakPort


def _port(session: Session) -> BreakPort:
    return cast(BreakSession, session).breaks


def add(session: Session, args: Namespace) -> BreakTable:
    condition = getattr(args, "if")  # a keyword of Python
    if args.location is None:
        if args.rank or condition:
            raise UsageError("llm-break: missing location", "llm-break LOCATION --rank N")
        return _port(session).table()
    action, *expressions = args.action or ("stop",)
    if action not in ACTIONS or (expressions and action != "log"):
        wrong = action if action not in ACTIONS else " ".join(expressions)
        raise UsageError(f"--action is stop, report, or log EXPRS, not {wrong}", "LOCATION comes first")
    chosen = pick_all(session.ranks(), args.rank or "all")
    pids = tuple(rank.process.pid for rank in chosen) if args.rank else None
    numbers = tuple(rank.process.rank for rank in chosen if rank.process.rank is not None)
    return _port(session).add(
        BreakOptions(
            location=args.location,
            pids=pids,
            condition=condition,
            count=args.count,
            action=action,
            limit=args.limit,
            others=OTHERS[args.others],
            wait=args.wait,
            expressions=tuple(expressions),
            ranks=numbers if args.rank and len(numbers) == len(chosen) else None,
        )
    )


def list_(session: Session, args: Namespace) -> BreakTable:
    return _port(session).table()


def delete(session: Session, args: Namespace) -> Optional[BreakTable]:
    port = _port(session)
    if args.number is None and port.table().points and not session.confirm("Delete all breakpoints of llm-break?"):
        return None
    return port.delete(args.number)


def go_on(session: Session, args: Namespace) -> None:
    _port(session).go_on()


_PYTHON = re.compile(r"\S+\.py:\d+")


def is_line_of_python(location: str) -> bool:
    """`serve.py:24`."""
    return _PYTHON.fullmatch(location) is not None


def not_for_gdb(location: str, ranks: Optional[Tuple[int, ...]], attached: bool) -> GdbextError:
    """What to do instead of waiting for a library that has this line."""
    rank = f" --rank {ranks[0]}" if ranks else ""
    first = "llm-detach-all, then " if attached else ""
    return UsageError(
        f"{location} is a line of Python, and gdb stops only in compiled code",
        f"{first}in a shell: gdbext pdb --inject {location}{rank}",
    )


def wrong_condition(outcome: str, condition: str, problem: str) -> GdbextError:
    """A condition that cannot be evaluated; the usual reason is an option behind it."""
    late = next((name for name in re.findall(r"(?:^|\s)(--\w+)", condition) if name in option_names(BREAK)), None)
    hint = f"--if takes the rest of the line: put {late} before it" if late else ""
    return UsageError(f"{outcome}: the condition cannot be evaluated: {problem}", hint)
