"""A shell that outlives us: it learns of our end by a pipe that the kernel closes, whatever ended us, and tidies up."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from typing import Optional

_NOT_ITS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Signals that end us must not end it: it inherits that they are held back."""


_SHELL_SECONDS = 10.0  # seconds


class Outliving:
    """Runs a script of sh on our lines; what stands behind its loop over them is done after the last one."""

    def __init__(self, script: str, name: str, *arguments: str, speaks: bool = False) -> None:
        """`speaks`: it has our stderr."""
        self._process: Optional[subprocess.Popen[bytes]] = None
        nowhere = subprocess.DEVNULL
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_ITS)
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", script, name, *arguments],
                stdin=subprocess.PIPE, stdout=nowhere, stderr=None if speaks else nowhere, start_new_session=True,
            )  # fmt: skip
        except (OSError, MemoryError):
            pass  # no shell, or no room for one: then there is none
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def tell(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(f"{line}\n".encode())
                self._process.stdin.flush()

    def end(self) -> None:
        """It has been told to end: close the pipe and see it off. A child that gdb has forked may hold it open."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_SHELL_SECONDS)
            self._process = None
