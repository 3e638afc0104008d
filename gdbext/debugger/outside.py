"""Lets `gdbext diagnose` look at ranks that this gdb does not hold: in a process of its own, so that the stops it makes
are none of gdb's business, and without holding a rank while symbols are read."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, Sequence, Tuple

import gdbext
from gdbext.commands.private_folder import private_copies
from gdbext.discovery.interpreter import interpreters
from gdbext.model.codec import load_snapshot
from gdbext.model.errors import GdbextError
from gdbext.model.job import JobSnapshot

_PACKAGE_PARENT = Path(gdbext.__file__).resolve().parent.parent
_GRACE_SECONDS = 5.0  # for the child to release the ranks when it is told to end
_HELD_BACK = 0.5  # seconds: so long after its error it has ended
_LONGEST_LINE = 4096
_OF_NO_INTEREST = "snapshot written to "  # into a folder of ours that is gone soon


def shell_python() -> str:
    """The Python that gdbext was installed for; gdb's own may lack the standard library's compiled parts."""
    found = interpreters()
    if not found:
        raise GdbextError("no python3 found to run `gdbext diagnose` with", "llm-attach-all attaches without it")
    return found[0]


def look(selectors: Sequence[str], say: Callable[[str], None], command: str = "diagnose") -> JobSnapshot:
    """The snapshot that a `gdbext COMMAND` of its own took. Raises GdbextError with its last words."""
    with private_copies() as folder:
        saved = folder / "snapshot.json"
        argv = [shell_python(), "-m", "gdbext", command, "--json=-", f"--save={saved}", *selectors]
        last, told = _run(argv, say)
        if not saved.exists():
            raise GdbextError(last or f"`gdbext {command}` gave no answer")
        if not told and not last.startswith(_OF_NO_INTEREST):
            say(last)
        return load_snapshot(saved.read_text("utf-8"))


def _run(argv: Sequence[str], say: Callable[[str], None]) -> Tuple[str, bool]:
    """Run it and pass its progress on; a Ctrl-C ends it and waits until it has let go of every rank. Returns its last
    message, which may be its error, and whether it was passed on."""
    child = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=_environment(),
        start_new_session=True,  # a Ctrl-C on the terminal is for gdb; we pass it on
    )
    last, told, since = "", True, 0.0
    try:
        for line in _lines(child):
            if line[:1].isspace() and last:
                last += f"\n{line}"
                if told:
                    say(line)
                continue
            # The last message of a child that fails is our error: it is held back until more comes, or it lives on.
            late = time.monotonic() - since > _HELD_BACK
            if not told and (line or late):
                told = True
                if not last.startswith(_OF_NO_INTEREST):
                    say(last)
            if line:
                last, told, since = line, False, time.monotonic()
    finally:
        _end(child)
    return last, told


def _lines(child: subprocess.Popen[bytes]) -> Iterator[str]:
    """Lines of its stderr; an empty one when none comes for a moment. Never waits in the kernel for long: Python sees a
    Ctrl-C between two of its steps."""
    assert child.stderr is not None
    descriptor = child.stderr.fileno()
    rest = b""
    while True:
        if not select.select([descriptor], [], [], 0.1)[0]:
            yield ""
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
    if "GDBEXT_GDB" not in kept and shutil.which("gdb") is None:
        kept["GDBEXT_GDB"] = os.readlink("/proc/self/exe")
    return kept
