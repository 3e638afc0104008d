"""The remote attach of CPython 3.14 (PEP 768): the interpreter of a rank runs a file at its next safe point."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Dict, List, Optional

from gdbext.discovery.procfs import ProcFS
from gdbext.model.missing import Missing

SINCE = (3, 14)
_CALL = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"
_SECONDS = 30.0
_left: Dict[int, str] = {}
"""Files that ranks are to run, by pid."""


def hand(pid: int, text: str) -> Optional[str]:
    """Why it did not work, None when the rank will run the text. `clear` or `withdraw` takes the file away."""
    owner = ProcFS().owner(pid)
    if isinstance(owner, Missing):
        return owner.reason
    root = f"/proc/{pid}/root"
    try:
        descriptor, path = tempfile.mkstemp(".py", "gdbext-", f"{root}/tmp")
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        if owner != os.geteuid():
            os.chown(path, owner, -1)
    except OSError as error:
        return f"no file can be put into its /tmp: {error.strerror}"
    _left[pid] = path
    problem = _call(pid, path[len(root) :])
    if problem is not None:
        clear(pid)
    return problem


def _call(pid: int, path: str) -> Optional[str]:
    """By an interpreter of the very same release: our own, or the rank's own program."""
    program = sys.executable if sys.version_info[:2] >= SINCE else f"/proc/{pid}/exe"
    words: List[str] = [program, "-I", "-S", "-c", _CALL, str(pid), path]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"its program cannot be started here: {error}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (lines[-1] if lines else f"status {done.returncode}") if done.returncode else None


def clear(pid: int) -> None:
    path = _left.pop(pid, None)
    if path is not None:
        try:
            os.unlink(path)
        except OSError:
            pass  # the rank has ended


def withdraw(pid: int) -> None:
    """The rank has not run the file: let it run an empty one instead, and leave nothing behind."""
    if pid in _left:
        clear(pid)
        _call(pid, "/dev/null")
