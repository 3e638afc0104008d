"""`gdbext vscode`: a launch.json that attaches VS Code to the ranks of the running job.

Keys: VS Code's C/C++ debugging reference (`cppdbg`, MIMode gdb) and debugpy's `attach` by `processId`. What else stands
in the file stays; configurations of ours, told by their names, are replaced.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any, Dict, List

from gdbext.cli.selection import chosen_job
from gdbext.cli.terminal import Progress, write_lines
from gdbext.collect.gdb.batch_runs import INIT, find_gdb
from gdbext.commands.user_files import write_private
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.errors import OK, GdbextError
from gdbext.model.job import Job, RankProcess
from gdbext.model.missing import Missing

OURS = "gdbext: "
"""Our configurations have names that begin so."""


def run(options: argparse.Namespace) -> int:
    """Write it into the folder, or print it; returns the exit status. Raises GdbextError."""
    proc = ProcFS()
    job = chosen_job(proc, options, options.inputs)
    path = Path(options.into) / "launch.json"
    document = written(path, job, find_gdb(options.gdb), proc)
    if options.print:
        write_lines([json.dumps(document, indent=2)])
    else:
        write(path, document)
        Progress().say(f"{path}: {len(job.ranks)} ranks of {job.engine or 'the job'}")
    return OK


def written(path: Path, job: Job, gdb: str, proc: ProcFS) -> Dict[str, Any]:
    """The whole document: what `path` holds now, and a configuration for each rank. Raises GdbextError."""
    document = _read(path)
    mine: List[Dict[str, Any]] = []
    for rank in job.ranks:
        mine += _of_rank(rank, gdb, proc)
    native = [one["name"] for one in mine if one["type"] == "cppdbg"]
    document["configurations"] = _without_ours(document, "configurations", path) + mine
    document["compounds"] = _without_ours(document, "compounds", path) + [
        {"name": f"{OURS}all ranks", "configurations": native, "stopAll": True}
    ]
    return document


def _of_rank(rank: RankProcess, gdb: str, proc: ProcFS) -> List[Dict[str, Any]]:
    name = f"pid {rank.pid}" if rank.rank is None else f"rank {rank.rank} (pid {rank.pid})"
    program = proc.exe(rank.pid)
    native = {
        "name": f"{OURS}{name}",
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
    }
    if not _is_python(rank.pid, proc):
        return [native]
    python = {"name": f"{OURS}{name}, Python", "type": "debugpy", "request": "attach", "processId": rank.pid}
    return [native, {**python, "justMyCode": False}]


def _is_python(pid: int, proc: ProcFS) -> bool:
    program, mapped = proc.exe(pid), proc.mapped_files(pid)
    files = ([program] if isinstance(program, str) else []) + ([] if isinstance(mapped, Missing) else [*mapped])
    return any(os.path.basename(file).startswith(("python", "libpython")) for file in files)


def _read(path: Path) -> Dict[str, Any]:
    try:
        document = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {"version": "0.2.0"}
    except OSError as error:
        raise GdbextError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise GdbextError(f"{path} is not plain JSON (comments?)", "--print shows what to put into it") from None
    if not isinstance(document, dict):
        raise GdbextError(f"{path} is no launch.json", "--print shows what to put into it")
    return document


def _without_ours(document: Dict[str, Any], key: str, path: Path) -> List[Any]:
    kept = document.get(key, [])
    if not isinstance(kept, list):
        raise GdbextError(f"{path} is no launch.json: {key} is not a list", "--print shows what to put into it")
    return [one for one in kept if not (isinstance(one, dict) and str(one.get("name", "")).startswith(OURS))]


def write(path: Path, document: Dict[str, Any]) -> None:
    """Whole or not at all. It is the project's, and readable as its other files are. Raises GdbextError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GdbextError(f"cannot write {path}: {error.strerror}") from None
    write_private(str(path), json.dumps(document, indent=2) + "\n", force=True, mode=0o644)
