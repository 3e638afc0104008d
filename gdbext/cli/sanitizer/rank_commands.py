"""Where the sanitizer stands in a command line: behind a launcher, so that each rank has its own and its own log."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import List, Mapping, NamedTuple, Optional, Sequence, Tuple

from gdbext.cli.sanitizer.installed_tool import SanitizerTool
from gdbext.discovery.ranks.rank_variables import claims_of
from gdbext.knowledge.launch.sanitizer_options import FILTERS, IN_EACH_RANK, LAUNCHERS, OPTIONS, LauncherRow
from gdbext.model.errors import GdbextError, UsageError

_VARIABLE = re.compile(r"[A-Za-z_]\w{0,80}=.*", re.DOTALL)
_MODULE = re.compile(r"python[\d.]*t?\Z")
_PLAIN = re.compile(r"[\w:.<> -]{1,300}\Z")
_VERSION_SECONDS = 20.0  # seconds for `mpirun --version`


class Place(NamedTuple):
    """`before`: the launcher's words. `program`: what each rank is. `rank`: the variable that has its number."""

    before: Tuple[str, ...]
    program: Tuple[str, ...]
    rank: str = ""
    launcher: str = ""


def placed(words: Sequence[str], environ: Mapping[str, str]) -> Place:
    """Raises `UsageError` where it cannot be told where the program begins, `GdbextError` for an unknown MPI."""
    at = _launcher_at(words)
    if at is None:
        return Place((), tuple(words))
    row, after = at
    launcher = os.path.basename(words[after - 1])
    program_at = _program_at(row, words, after)
    if ":" in words[program_at:]:
        raise UsageError(f"{launcher} starts several programs", IN_EACH_RANK)
    before, program = list(words[:program_at]), list(words[program_at:])
    if row.python:
        before, program = _of_torchrun(before, program, after, _python(words, after, environ))
    return Place(tuple(before), tuple(program), row.rank or _rank_of(row, words[after - 1]), launcher)


def _launcher_at(words: Sequence[str]) -> Optional[Tuple[LauncherRow, int]]:
    """The launcher that comes first, and where its options begin."""
    at = 0
    if os.path.basename(words[0]) == "env":
        at = next((number for number, word in enumerate(words) if number and not _VARIABLE.match(word)), 0)
    module = _MODULE.match(os.path.basename(words[at])) and len(words) > at + 2 and words[at + 1] == "-m"
    name = words[at + 2] if module else os.path.basename(words[at])
    row = next((one for one in LAUNCHERS if name in one.names), None)
    return None if row is None else (row, at + (3 if module else 1))


def _program_at(row: LauncherRow, words: Sequence[str], at: int) -> int:
    """Where a launcher's options are over. Raises `UsageError`."""
    takes = dict.fromkeys(row.pairs.split(), 1)
    takes.update(dict.fromkeys(row.triples.split(), 2))
    takes.update(dict.fromkeys(row.flags.split(), 0))
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        word = words[at]
        if word in takes:
            at += 1 + takes[word]
        elif ("=" in word and word.startswith("--")) or (len(word) > 2 and word[1] in row.short and word[1] != "-"):
            at += 1
        else:
            raise UsageError(
                f"{word[:40]} of {row.names[0]} is not known, so neither where the program begins", IN_EACH_RANK
            )
    at += words[at : at + 1] == ["--"]
    if at >= len(words):
        raise UsageError(f"no program behind {row.names[0]}", IN_EACH_RANK)
    return at


def _of_torchrun(before: List[str], program: List[str], after: int, python: str) -> Tuple[List[str], List[str]]:
    """It runs a script by its Python; with --no-python it runs what it is given."""
    options = before[after:]
    if any(word in ("--no-python", "--no_python") for word in options):
        return before, program
    module = [word for word in options if word in ("-m", "--module")]
    kept = [word for word in options if word not in module]
    return [*before[:after], *kept, "--no-python"], [python, "-u", *(["-m"] if module else []), *program]


def _python(words: Sequence[str], after: int, environ: Mapping[str, str]) -> str:
    """The Python that torchrun would run a script by (torch/distributed/run.py: PYTHON_EXEC, else its own)."""
    if environ.get("PYTHON_EXEC"):
        return environ["PYTHON_EXEC"]
    if words[after - 2] == "-m":
        return words[after - 3]
    path = shutil.which(words[after - 1], path=environ.get("PATH"))
    try:
        with open(path or words[after - 1], "rb") as file:
            first = file.readline(400).decode("utf-8", "replace")
    except OSError:
        first = ""
    named = first[2:].split() if first.startswith("#!") else []
    return named[0] if named and _MODULE.match(os.path.basename(named[0])) else "python3"


def _rank_of(row: LauncherRow, program: str) -> str:
    """The variable of this MPI: `mpirun` is the name of several. Raises `GdbextError`."""
    try:
        done = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_VERSION_SECONDS, check=False
        )
        said = (done.stdout + done.stderr)[:20_000].decode("utf-8", "replace")
    except OSError as error:
        raise GdbextError(f"cannot run {program}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        said = ""
    found = next((variable for pattern, variable in row.rank_of if re.search(pattern, said)), None)
    if found is None:
        raise GdbextError(f"{program} --version does not say which MPI it is", IN_EACH_RANK)
    return found


def log_of(place: Place, folder: str, environ: Mapping[str, str]) -> str:
    """The file for the reports; in the sanitizer's own words where each rank has one."""
    if place.rank:
        return os.path.join(folder, f"san.%q{{{place.rank}}}.log")
    claim = next((one for one in claims_of(environ) if one.role == "rank"), None)
    return os.path.join(folder, "san.log" if claim is None else f"san.{claim.rank}.log")


def options_of(
    tool: SanitizerTool, check: str, log: str, kernel: Optional[str], asked: Sequence[str]
) -> Tuple[List[str], List[str]]:
    """The sanitizer's options, and a line for each that this release has not. Raises `UsageError`."""
    own = dict(_asked(one, tool) for one in asked)
    words, said = [], []
    if tool.libraries is not None:
        words += ["--injection-path", tool.libraries]
    for row in OPTIONS:
        if row.name in own:
            continue
        if row.name not in tool.options:
            said.append(f"{tool.named} has no {row.name}{f' ({row.why})' if row.why else ''}")
            continue
        words += [row.name, row.value.format(tool=check, log=log)]
    if kernel:
        words += _filter(tool, kernel)
    for name, value in own.items():
        words += [name, value] if value else [name]
    return words, said


def _asked(text: str, tool: SanitizerTool) -> Tuple[str, str]:
    name, _, value = text.partition("=")
    option = f"--{name.lstrip('-')}"
    if option not in tool.options:
        raise UsageError(f"{tool.named} has no option {option[:60]}", f"{tool.path} --help lists them")
    if option == "--log-file":
        raise UsageError("--log-file is for gdbext to choose", "--dir DIR is its folder")
    return option, value


def _filter(tool: SanitizerTool, kernel: str) -> List[str]:
    row = next((one for one in FILTERS if one.option in tool.options), None)
    if row is None:
        raise UsageError(f"{tool.named} cannot choose kernels", "leave --kernel out")
    if not row.regex and not _PLAIN.match(kernel):
        raise UsageError(f"{tool.named} takes part of a kernel's name, not an expression", "--kernel flash_fwd")
    return [row.option, row.value.format(kernel=kernel)]
