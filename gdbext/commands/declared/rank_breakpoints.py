"""Breakpoints of some ranks."""

from gdbext.commands.argument_types import condition, others, positive, seconds
from gdbext.commands.declaration import Argument, Command

LIMIT = 120.0
WAIT = 5.0
_EXAMPLE = "llm-break synchronize --rank 1"

BREAK = Command(
    "Set a breakpoint that stops some ranks of a job, or list such breakpoints",
    gdb="llm-break",
    body="gdbext.commands.rank_breakpoints:add",
    category="breakpoints",
    arguments=(
        Argument(
            "location",
            "a location, as for gdb's `break`; in quotes if it contains spaces",
            "LOCATION",
            nargs="?",
            completes="place",
        ),
        Argument("--rank", "stop only for these ranks, such as 1 or 0-3 (default: any)", "RANKS", completes="ranks"),
        Argument("--count", "let each rank pass N-1 times first", "N", positive, default=1),
        Argument(
            "--others",
            "what the other ranks do: stop at once, hold (run to the same place and wait there), or keep running",
            "stop|hold|run",
            others,
            default="stop",
        ),
        Argument(
            "--wait", "with hold: seconds to wait for the other ranks to arrive (5)", "SECONDS", seconds, default=WAIT
        ),
        Argument("--limit", "release every rank after SECONDS without a command", "SECONDS", seconds, default=LIMIT),
        Argument(
            "--action",
            "what to do at a hit: stop; log EXPRS: print their values and resume the rank; report: print a report as "
            "llm-check does, and resume the rank",
            "WHAT",
            nargs="+",
            completes="stop|log|report",
        ),
        Argument(
            "--if",
            "stop only if COND is true in that rank; the last option: gdb evaluates the rest of the line",
            "COND",
            condition,
            completes="expression",
            rest=True,
        ),
    ),
    description=(
        "When a rank stops there, next, step and finish move that rank alone, llm-rank apply moves others, and "
        "llm-continue resumes all together. In COND, `$_llm_rank()` is the number of the rank, and "
        '`$_llm_tensor_stat(EXPR, "nan")` how many elements of a tensor are NaN. If COND cannot be evaluated, '
        "gdbext reports it, when the breakpoint is set or at the first hit, and does not stop the rank. LOCATION may "
        "be in a library that is not loaded yet."
    ),
    examples=(
        _EXAMPLE,
        "llm-break parallel_gpt.cc:135 --count 10 --if $_llm_rank() == 2 && step > 5",
        "llm-break decode --rank 1 --others hold",
        "llm-break decode --action log step 'this->plan_.rank'",
        "llm-break list",
    ),
    prefix=True,
    holds=True,
)
COMMANDS = (
    BREAK,
    Command(
        "List the breakpoints of llm-break, and where the ranks are",
        gdb="llm-break list",
        body="gdbext.commands.rank_breakpoints:list_",
        category="breakpoints",
    ),
    Command(
        "Delete breakpoints of llm-break",
        gdb="llm-break delete",
        body="gdbext.commands.rank_breakpoints:delete",
        category="breakpoints",
        arguments=(
            Argument(
                "number", "its number in llm-break list (default: all, after a confirmation)", "N", positive, nargs="?"
            ),
        ),
    ),
    Command(
        "Resume all ranks together, up to the next stop",
        gdb="llm-continue",
        body="gdbext.commands.rank_breakpoints:go_on",
        category="running",
        examples=(_EXAMPLE, "llm-continue"),
        repeats=True,
    ),
)
