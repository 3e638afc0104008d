"""Lets `gdbext diagnose` look at ranks that this gdb does not hold: in a process of its own, so that the stops it makes
are none of gdb's business, and without holding a rank while symbols are read."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
from pathlib import Path
from typing import Callable, Dict, Iterator, Optional, Sequence

import gdbext
from gdbext.capture.private_folder import private_copies
from gdbext.discovery.proc import programs
from gdbext.discovery.proc.shell_python import interpreters
from gdbext.model.errors import USAGE, GdbextError, UsageError
from gdbext.model.job import JobSnapshot
from gdbext.model.snapshot_files.codec import load_snapshot

_PACKAGE_PARENT = Path(gdbext.__file__).resolve().parent.parent
_START = f"""import sys
sys.path = [{str(_PACKAGE_PARENT)!r}, *filter(None, sys.path)]
from gdbext.__main__ import main
sys.exit(main())"""
"""Not `-m gdbext`: Python then looks for every module in the present folder first, and that may be a rank's."""
_GRACE_SECONDS = 5.0  # for the child to release the ranks when it is told to end
_LONGEST_LINE = 4096
_LONGEST_ERROR = 64 << 10


def shell_python() -> str:
    """The Python that gdbext was installed for; gdb's own may lack the standard library's compiled parts."""
    found = interpreters()
    if not found:
        raise GdbextError("no python3 found to run `gdbext diagnose` with", "llm-attach-all attaches without it")
    return found[0]


def look(selectors: Sequence[str], say: Callable[[str], None], command: str = "diagnose") -> JobSnapshot:
    """The snapshot that a `gdbext COMMAND` of its own took. Raises its error as a GdbextError."""
    with private_copies() as folder:
        saved, answer = folder / "snapshot.json", folder / "answer.json"
        argv = [shell_python(), "-c", _START, command, "--json", f"--save={saved}", *selectors]
        last = _run(argv, say, answer)
        if not saved.exists():
            raise _error_in(answer) or GdbextError(last or f"`gdbext {command}` gave no answer")
        return load_snapshot(saved.read_bytes())


def _error_in(answer: Path) -> Optional[GdbextError]:
    """The error of the child, which it writes there before it says it."""
    if answer.stat().st_size > _LONGEST_ERROR:
        return None
    try:
        document = json.loads(answer.read_text("utf-8"))
        kind = UsageError if document["exit"] == USAGE else GdbextError
        return kind(document["error"], document["hint"] or "")
    except (ValueError, KeyError):  # it was ended, or that is its answer
        return None


def _run(argv: Sequence[str], say: Callable[[str], None], answer: Path) -> str:
    """Run it and pass its progress on, but for its error and what it says of our folder; a Ctrl-C ends it and waits
    until it has let go of every rank. Returns its last message."""
    with answer.open("wb") as stdout:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,  # a Ctrl-C on the terminal is for gdb; we pass it on
        )
    last = ""
    try:
        for line in _lines(child):
            last = f"{last}\n{line}" if line[:1].isspace() else line
            if str(answer.parent) not in last and _error_in(answer) is None:
                say(line)
    finally:
        _end(child)
    return last


def _lines(child: subprocess.Popen[bytes]) -> Iterator[str]:
    """Lines of its stderr. Never waits in the kernel for long: Python sees a Ctrl-C between two of its steps."""
    assert child.stderr is not None
    descriptor = child.stderr.fileno()
    rest = b""
    while True:
        if not select.select([descriptor], [], [], 0.1)[0]:
            continue
        data = os.read(descriptor, 1 << 16)
        *whole, rest = (rest + data).split(b"\n")
        for line in whole if data else [*whole, rest]:
            text = line[:_LONGEST_LINE].decode("utf-8", "replace").rstrip()
            if text:
                yield text[len("gdbext: ") :] if text.startswith("gdbext: ") else text
        if not data:
            return


def _end(child: subprocess.Popen[bytes]) -> None:
    try:
        if child.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_GRACE_SECONDS / 10)  # it has closed its stderr: it is about to end by itself
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            child.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    finally:
        if child.stderr is not None:
            child.stderr.close()


def _environment() -> Dict[str, str]:
    """Ours, without what gdb's own Python was started with, and with the gdb that runs now where no other is found."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONSTARTUP")}
    kept["PYTHONPATH"] = str(_PACKAGE_PARENT)
    if "GDBEXT_GDB" not in kept and programs.find("gdb").path is None:
        kept["GDBEXT_GDB"] = os.readlink("/proc/self/exe")
    return kept
