"""Whether a command without arguments is to read standard input: `cat stacks.txt | gdbext diagnose`.

A pipe that stays silent must not keep a look at running ranks waiting: CI, cron and ssh hand down pipes that nobody
writes to. What was decided is said.
"""

from __future__ import annotations

import os
import select
import stat
import sys

from gdbext.cli.terminal import Progress
from gdbext.model.errors import NothingFound

_FIRST_BYTE_MILLISECONDS = 1000  # milliseconds until a pipe has a byte, or an end
_INSTEAD = "gdbext {command} </dev/null uses the processes of this host"


def is_given(command: str, progress: Progress) -> bool:
    """True for a file with something in it, and for a pipe in which something comes at once."""
    try:
        descriptor = sys.stdin.fileno()
        status = os.fstat(descriptor)
    except (OSError, ValueError, AttributeError):  # closed, or a stand-in
        return False
    if stat.S_ISREG(status.st_mode):
        given = status.st_size > os.lseek(descriptor, 0, os.SEEK_CUR)
    elif stat.S_ISFIFO(status.st_mode):
        given = _has_data(descriptor, command, progress)
    else:
        if stat.S_ISSOCK(status.st_mode) and _events(descriptor, 0) & select.POLLIN:
            progress.note(f"standard input is a socket and is not read; gdbext {command} - reads it")
        return False
    if given:
        progress.note(f"reading standard input; {_INSTEAD.format(command=command)}")
    return given


def not_found(error: NothingFound, command: str) -> NothingFound:
    """The same for somebody who may not have meant standard input."""
    return NothingFound(error.args[0], f"{error.hint}; {_INSTEAD.format(command=command)}")


def _has_data(descriptor: int, command: str, progress: Progress) -> bool:
    events = _events(descriptor, _FIRST_BYTE_MILLISECONDS)
    if events & select.POLLIN:
        return True
    if events:
        progress.note("standard input is an empty pipe: using the processes of this host")
    else:
        progress.note(
            f"standard input is a silent pipe: using the processes of this host (gdbext {command} - waits for it)"
        )
    return False


def _events(descriptor: int, milliseconds: int) -> int:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return next((events for _, events in poll.poll(milliseconds)), 0)
