"""llm-break, llm-continue: a breakpoint for some ranks of a job; the others are held with them and go on with them."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError, Namespace
from dataclasses import dataclass
from typing import Optional, Protocol, Tuple, cast

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.parsing import option_names
from gdbext.commands.selection import pick_all
from gdbext.commands.session import Session
from gdbext.model.break_points import BreakTable
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.text.digits import whole

LIMIT = 120.0
WAIT = 5.0
OTHERS = {"stop": "stop", "hold": "hold", "stop-at-same": "hold", "run": "run"}
ACTIONS = ("stop", "log", "report")
_LONGEST = 24 * 3600.0


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
    """Breakpoints over the inferiors of this gdb. `debugger/breakpoints/break_points.py` is the real one."""

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
            raise UsageError("break where?", "llm-break LOCATION --rank N")
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
            args.location,
            pids,
            condition,
            args.count,
            action,
            args.limit,
            OTHERS[args.others],
            args.wait,
            tuple(expressions),
            numbers if args.rank and len(numbers) == len(chosen) else None,
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
    late = next((name for name in re.findall(r"(?:^|\s)(--\w+)", condition) if name in option_names(COMMANDS[0])), None)
    hint = f"--if takes the rest of the line: put {late} before it" if late else ""
    return UsageError(f"{outcome}: the condition cannot be evaluated: {problem}", hint)


def condition(text: str) -> str:
    """Type of `--if`. Quotes around all of it, as a shell would need them, are taken off."""
    if len(text) > 1 and text[0] in "'\"" and text[0] == text[-1] and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    if not text:
        raise ArgumentTypeError("a condition is missing")
    return text


def positive(text: str) -> int:
    """Type of a count."""
    if not whole(text):
        raise ArgumentTypeError(f"not a number from 1 on: {text}")
    return int(text)


def seconds(text: str) -> float:
    """Type of `--limit`; `120` and `120s`."""
    try:
        found = float(text[:-1] if text.endswith("s") else text)
    except ValueError:
        found = 0.0
    if not 0 < found <= _LONGEST:
        raise ArgumentTypeError(f"seconds, up to a day, not {text}")
    return found


def others(text: str) -> str:
    """Type of `--others`."""
    if text not in OTHERS:
        raise ArgumentTypeError(f"hold, stop or run, not {text}")
    return text


_EXAMPLE = "llm-break synchronize --rank 1"

COMMANDS = (
    Command(
        "llm-break",
        "Set a breakpoint that stops some ranks of a job, or list these",
        add,
        "breakpoints",
        (
            Argument("location", "as gdb's `break` takes it; quoted when it has spaces", "LOCATION", nargs="?"),
            Argument("--rank", "stop when one of these comes there, like 1 or 0-3 (any)", "RANKS", completes="ranks"),
            Argument("--count", "a rank stops from its Nth passing on", "N", positive, default=1),
            Argument(
                "--others",
                "stop: at once, wherever they are; hold: they run up to the same place and wait; run: they run on",
                "stop|hold|run",
                others,
                default="stop",
            ),
            Argument("--wait", "with hold, how long the others may take to come (5)", "SECONDS", seconds, default=WAIT),
            Argument(
                "--limit", "without a command for so long, every rank is released", "SECONDS", seconds, default=LIMIT
            ),
            Argument(
                "--action",
                "stop; log: say the values of EXPRS and let the rank run on; report: as llm-check, and run on",
                "WHAT",
                nargs="+",
            ),
            Argument(
                "--if",
                "stop only when this is true in that rank; comes last: the rest of the line is COND, as gdb takes it",
                "COND",
                condition,
                completes="expression",
                rest=True,
            ),
        ),
        description=(
            "When a rank stops there, next, step and finish move that rank alone, llm-rank apply moves others, and "
            "llm-continue resumes all together. `$_llm_rank()` is the rank's number in COND, and "
            '`$_llm_tensor_stat(EXPR, "nan")` a number about a tensor. A COND that cannot be evaluated is reported '
            "when it is set, else at its first hit, and never stops a rank. A library not loaded yet may be named."
        ),
        examples=(
            _EXAMPLE,
            "llm-break parallel_gpt.cc:135 --count 10 --if $_llm_rank() == 2 && step > 5",
            "llm-break decode --rank 1 --others hold",
            "llm-break decode --action log step 'this->plan_.rank'",
            "llm-break list",
        ),
        prefix=True,
    ),
    Command("llm-break list", "List the breakpoints of llm-break, and where the ranks are", list_, "breakpoints"),
    Command(
        "llm-break delete",
        "Take breakpoints of llm-break away",
        delete,
        "breakpoints",
        (Argument("number", "as llm-break list shows it (all, after a question)", "N", positive, nargs="?"),),
    ),
    Command(
        "llm-continue",
        "Resume all ranks together, up to the next stop",
        go_on,
        "running",
        examples=(_EXAMPLE, "llm-continue"),
        repeats=True,
    ),
)
