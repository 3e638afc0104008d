"""`gdbext vscode`: launch.json and tasks.json that attach VS Code to the ranks of the running job.

Keys: VS Code's C/C++ debugging reference (`cppdbg`, MIMode gdb), debugpy's `attach` by `processId`, VS Code's "Tasks"
and "Debugging: compound launch configurations". VS Code reads the pids before it runs the task that asks for those of
now (`--check`): where they differ, the task writes the file anew and fails, and the next start attaches.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from gdbext.cli.chosen_processes import chosen_job
from gdbext.cli.terminal import Progress, write_lines
from gdbext.collect.gdb_runs.batch_runs import INIT, find_gdb
from gdbext.commands.user_files import write_private
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.errors import FINDING, OK, GdbextError, refused_as
from gdbext.model.job import Job, RankProcess
from gdbext.model.missing import Missing
from gdbext.model.text.ranges import counted

OURS = "gdbext: "
"""Our configurations and tasks have names that begin so."""
TASK = f"{OURS}which ranks run now"
_LONGEST = 256 * 1024  # characters of a file with comments
_HINT = "--print shows what to put into it"


def run(options: argparse.Namespace) -> int:
    """Write them into the folder, or print the first; returns the exit status. Raises GdbextError."""
    proc = ProcFS()
    job = chosen_job(proc, options, options.inputs)
    folder = Path(options.into)
    path = folder / "launch.json"
    document, old = launch_document(path, job, find_gdb(options.gdb), proc)
    if options.print:
        write_lines([json.dumps(document, indent=2)])
        return OK
    if options.check and document == old.get("document"):
        return OK
    tasks, old_tasks = _with_task(folder / "tasks.json", _selectors(options, job))
    for name, new, before in (("launch.json", document, old), ("tasks.json", tasks, old_tasks)):
        kept = write(folder / name, new, before)
        if kept:
            Progress().say(f"comments of {name} are lost in the new one; they are in {kept}")
    found = f"{path}: {counted(len(job.ranks), 'rank')} of {job.engine or 'the job'}"
    Progress().say(f"{found}, with new pids; start again" if options.check else found)
    return FINDING if options.check else OK


def launch_document(path: Path, job: Job, gdb: str, proc: ProcFS) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """The whole document: what `path` holds now, and a configuration for each rank; and what was read (see `_read`).
    Raises GdbextError."""
    old = _read(path, {"version": "0.2.0"})
    document = dict(old["document"])
    native = [_native(rank, gdb, proc) for rank in job.ranks]
    python = [_python(rank) for rank in job.ranks if _is_python(rank.pid, proc)]
    compounds = [_compound("all ranks", native)] + ([_compound("all ranks, Python", python)] if python else [])
    document["configurations"] = _without_ours(document, "configurations", path) + native + python
    document["compounds"] = _without_ours(document, "compounds", path) + compounds
    return document, old


def _compound(name: str, configurations: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
    names = [one["name"] for one in configurations]
    return {"name": OURS + name, "configurations": names, "stopAll": True, "preLaunchTask": TASK}


def _name(rank: RankProcess) -> str:
    """The same when the job is started again."""
    return OURS + (f"pid {rank.pid}" if rank.rank is None else f"rank {rank.rank}")


def _native(rank: RankProcess, gdb: str, proc: ProcFS) -> Dict[str, Any]:
    program = proc.exe(rank.pid)
    return {
        "name": _name(rank),
        "type": "cppdbg",
        "request": "attach",
        "program": program if isinstance(program, str) else f"/proc/{rank.pid}/exe",
        "processId": str(rank.pid),
        "MIMode": "gdb",
        "miDebuggerPath": gdb,
        "setupCommands": [
            {"text": "-enable-pretty-printing", "ignoreFailures": True},
            {"text": f"source {INIT}", "description": "gdbext"},
        ],
        "preLaunchTask": TASK,
    }


def _python(rank: RankProcess) -> Dict[str, Any]:
    python = {"name": f"{_name(rank)}, Python", "type": "debugpy", "request": "attach", "processId": rank.pid}
    return {**python, "justMyCode": False, "preLaunchTask": TASK}


def _is_python(pid: int, proc: ProcFS) -> bool:
    program, mapped = proc.exe(pid), proc.mapped_files(pid)
    files = ([program] if isinstance(program, str) else []) + ([] if isinstance(mapped, Missing) else [*mapped])
    return any(os.path.basename(file).startswith(("python", "libpython")) for file in files)


def _selectors(options: argparse.Namespace, job: Job) -> List[str]:
    """What finds the job again when it runs by other pids."""
    given = [f"--{name}={getattr(options, name)}" for name in ("name", "engine", "gdb") if getattr(options, name)]
    return given if options.name or options.engine or not job.engine else [*given, f"--engine={job.engine}"]


def _with_task(path: Path, selectors: Sequence[str]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """The document of tasks with ours, and what was read. Raises GdbextError."""
    old = _read(path, {"version": "2.0.0"})
    document = dict(old["document"])
    installed = shutil.which("gdbext")
    command = [installed] if installed else [sys.executable, "-m", "gdbext"]
    task = {
        "label": TASK,
        "type": "process",
        "command": command[0],
        "args": [*command[1:], "vscode", "--check", "--into", os.path.abspath(path.parent), *selectors],
        "presentation": {"reveal": "silent"},
        "problemMatcher": [],
    }
    document["tasks"] = [*_without_ours(document, "tasks", path), task]
    return document, old


def _read(path: Path, empty: Dict[str, Any]) -> Dict[str, Any]:
    """`document`, and `text` where it is no plain JSON: VS Code allows comments, and commas at the end of lists."""
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        return {"document": empty}
    except (OSError, UnicodeDecodeError) as error:
        raise GdbextError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is no UTF-8'}") from None
    found: Dict[str, Any] = {}
    try:
        found["document"] = json.loads(text)
    except (ValueError, RecursionError):
        found = {"document": _with_comments(path, text), "text": text}
    if not isinstance(found["document"], dict):
        raise GdbextError(f"{path} is no {path.name}", _HINT)
    return found


def _with_comments(path: Path, text: str) -> Any:
    if not text.strip():
        return {}
    if len(text) > _LONGEST:
        raise GdbextError(f"{path} is not plain JSON, and too long to be read as JSON with comments", _HINT)
    try:
        import json5
    except ImportError:
        raise GdbextError(
            f"{path} has comments: the package json5 is missing", "python3 -m pip install json5"
        ) from None
    try:
        return json5.loads(text)
    except (ValueError, RecursionError) as error:
        raise GdbextError(f"{path} is no JSON: {str(error).splitlines()[0][:100]}", _HINT) from None


def _without_ours(document: Dict[str, Any], key: str, path: Path) -> List[Any]:
    kept = document.get(key, [])
    if not isinstance(kept, list):
        raise GdbextError(f"{path} is no {path.name}: {key} is not a list", _HINT)
    label = "label" if key == "tasks" else "name"
    return [one for one in kept if not (isinstance(one, dict) and str(one.get(label, "")).startswith(OURS))]


def write(path: Path, document: Dict[str, Any], old: Dict[str, Any]) -> Optional[str]:
    """Whole or not at all; returns where the text with comments is kept. It is the project's, and readable as its other
    files are. Raises GdbextError."""
    with refused_as(f"cannot write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
    kept = None
    if old.get("text", "").strip():
        kept = f"{path}.with-comments"
        write_private(kept, old["text"], force=True, mode=0o644)
    write_private(str(path), json.dumps(document, indent=2) + "\n", force=True, mode=0o644)
    return kept
