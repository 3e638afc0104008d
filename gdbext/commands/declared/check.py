"""Failed checks of CUDA."""

from __future__ import annotations

from gdbext.commands.argument_types import action
from gdbext.commands.declaration import Argument, Command

_RANKS = Argument("--ranks", "on these ranks, like 0-3,7 (all)", "RANKS", completes="ranks")

COMMANDS = (
    Command(
        "Stop where a check of CUDA fails, and say what failed and why",
        gdb="llm-check",
        body="gdbext.commands.check:choose",
        category="breakpoints",
        description=(
            "Breakpoints stand only where a failure is raised, never where a check is entered: a server that checks a "
            "million times a second loses nothing. Fatal signals (SIGBUS, SIGSEGV, SIGABRT) get a report as well."
        ),
        examples=("llm-check on", "llm-check on --log failures.jsonl", "llm-check report"),
        prefix=True,
    ),
    Command(
        "Stop with a report wherever a check of CUDA fails from now on",
        gdb="llm-check on",
        body="gdbext.commands.check:on",
        category="breakpoints",
        arguments=(
            Argument(
                "--engine", "only checks of this engine (vllm, fastertransformer, ...)", "NAME", completes="engine"
            ),
            _RANKS,
            Argument("--action", "stop, or log: print the report and let the rank run on", "stop|log", action),
            Argument("--log", "append each report to FILE as a line of JSON, and let the rank run on", "FILE"),
        ),
        description=(
            "Works in release builds, without debug information. Libraries that are loaded later are watched too. "
            "When one rank stops, gdb stops the others as well; `continue` resumes all. "
            "A fatal signal stops with --log too."
        ),
        examples=("llm-check on", "llm-check on --ranks 0-3 --action log", "llm-check on --log failures.jsonl"),
    ),
    Command(
        "Take the breakpoints of llm-check on away",
        gdb="llm-check off",
        body="gdbext.commands.check:off",
        category="breakpoints",
    ),
    Command(
        "Show what is watched and what was seen",
        gdb="llm-check status",
        body="gdbext.commands.check:status",
        category="breakpoints",
    ),
    Command(
        "List the checks that are known",
        gdb="llm-check list",
        body="gdbext.commands.check:list_",
        category="breakpoints",
    ),
    Command(
        "Report what stopped or killed the selected thread",
        gdb="llm-check report",
        body="gdbext.commands.check:report",
        category="breakpoints",
        description="Also in the core file of a crash.",
    ),
    Command(
        "Switch the engine's own debug check on in the running process",
        gdb="llm-check enable",
        body="gdbext.commands.check:enable",
        category="breakpoints",
        arguments=(_RANKS,),
        description=(
            "Writes to the process: the variables that its environment would have set at start. What was written is "
            "read back; llm-check disable restores what was there before. "
            "For a program not started yet: gdbext run --check -- COMMAND."
        ),
    ),
    Command(
        "Undo llm-check enable",
        gdb="llm-check disable",
        body="gdbext.commands.check:disable",
        category="breakpoints",
        arguments=(_RANKS,),
    ),
)
