"""Failed checks of CUDA."""

from gdbext.commands.argument_types import action
from gdbext.commands.declaration import Argument, Command

_RANKS = Argument("--ranks", "ranks such as 0-3,7 (default: all)", "RANKS", completes="ranks")

COMMANDS = (
    Command(
        "Stop where a CUDA check fails, and report what failed and why",
        gdb="llm-check",
        category="breakpoints",
        description=(
            "gdbext sets breakpoints only where a failure is raised, never where a check is entered, so it does not "
            "slow down a server that checks a million times a second. Fatal signals (SIGBUS, SIGSEGV, SIGABRT) "
            "get a report as well."
        ),
        examples=("llm-check on", "llm-check on --log failures.jsonl", "llm-check report"),
        prefix=True,
    ),
    Command(
        "From now on, stop with a report wherever a CUDA check fails",
        gdb="llm-check on",
        body="gdbext.commands.check:on",
        category="breakpoints",
        arguments=(
            Argument(
                "--engine", "only checks of this engine (vllm, fastertransformer, ...)", "NAME", completes="engine"
            ),
            _RANKS,
            Argument("--action", "stop; log: print the report and resume the rank", "stop|log", action),
            Argument("--log", "append each report to FILE as a line of JSON, and resume the rank", "FILE"),
        ),
        description=(
            "Works in release builds, without debug information, and in libraries that are loaded later. When "
            "one rank stops, gdb stops the others as well; `continue` resumes all. A fatal signal stops the rank "
            "even with --log."
        ),
        examples=("llm-check on", "llm-check on --ranks 0-3 --action log", "llm-check on --log failures.jsonl"),
    ),
    Command(
        "Delete the breakpoints of llm-check on",
        gdb="llm-check off",
        body="gdbext.commands.check:off",
        category="breakpoints",
    ),
    Command(
        "Show which checks are watched and which failures were seen",
        gdb="llm-check status",
        body="gdbext.commands.check:status",
        category="breakpoints",
    ),
    Command("List all known checks", gdb="llm-check list", body="gdbext.commands.check:list_", category="breakpoints"),
    Command(
        "Report what stopped or killed the selected thread",
        gdb="llm-check report",
        body="gdbext.commands.check:report",
        category="breakpoints",
        arguments=(
            Argument(
                "reports",
                "files with reports of compute-sanitizer of the same run",
                "FILE",
                nargs="*",
                completes="file",
            ),
        ),
        description="Also in the core file of a crash. Files of compute-sanitizer add what they say of kernels.",
    ),
    Command(
        "Switch on the engine's own debug checks in the running process",
        gdb="llm-check enable",
        body="gdbext.commands.check:enable",
        category="breakpoints",
        arguments=(_RANKS,),
        description=(
            "Writes to the process: it sets the variables that the environment would have set at start, and "
            "reads them back. llm-check disable restores the old values. To start a program with checks on: "
            "gdbext run --check -- COMMAND."
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
