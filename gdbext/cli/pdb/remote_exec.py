"""The remote attach of CPython 3.14 (PEP 768): the interpreter of a rank runs a file at its next safe point.

The file is made below the rank's own root folder, and the rank's own program may be started to ask for it. Both are
what its user makes of them: so root does it with the rights of that user, never with its own.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass
from typing import ContextManager, Dict, Iterator, List, Optional

from gdbext.safe_open import files

SINCE = (3, 14)
_CALL = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"
_SECONDS = 30.0
_FOLDER = "/tmp"  # noqa: S108 - the rank's
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class _User:
    """The user and the group that a process runs as."""

    user: int
    group: int

    @property
    def is_another(self) -> bool:
        """Whether we are root, and it is not."""
        return os.geteuid() == 0 and self.user != 0


@dataclass(frozen=True)
class _ScriptFile:
    """A file that a rank is to run, in its own /tmp."""

    name: str
    owner: _User


_left: Dict[int, _ScriptFile] = {}
"""By pid."""


def send_script(pid: int, text: str) -> Optional[str]:
    """Why it did not work, None when the rank will run the text. `clear` or `withdraw` takes the file away."""
    name = f"gdbext-{secrets.token_hex(8)}.py"
    try:
        found = os.stat(f"/proc/{pid}")
        owner = _User(found.st_uid, found.st_gid)
        with _acting_as(owner), _folder(pid) as folder:
            descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        return f"cannot create a file in its {_FOLDER}: {error.strerror}"
    _left[pid] = _ScriptFile(name, owner)
    problem = _call(pid, f"{_FOLDER}/{name}", owner)
    if problem is not None:
        clear(pid)
    return problem


def _folder(pid: int) -> ContextManager[int]:
    """Its own: no link in it leads out of its root."""
    return files.folder(_FOLDER, f"/proc/{pid}/root")


def _call(pid: int, path: str, owner: _User) -> Optional[str]:
    """By an interpreter of the very same release: our own, or the rank's own program."""
    ours = sys.version_info[:2] >= SINCE
    words: List[str] = [sys.executable if ours else f"/proc/{pid}/exe", "-I", "-S", "-c", _CALL, str(pid), path]
    become, environment = None, None
    if owner.is_another and not ours:
        become = functools.partial(_switch_user, owner)
        environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            cwd="/",
            env=environment,
            start_new_session=True,  # our terminal is not for it to type on
            preexec_fn=become,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"its program cannot be started here: {error}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (lines[-1] if lines else f"status {done.returncode}") if done.returncode else None


def clear(pid: int) -> None:
    left = _left.pop(pid, None)
    if left is not None:
        with contextlib.suppress(OSError), _acting_as(left.owner), _folder(pid) as folder:  # else the rank has ended
            os.unlink(left.name, dir_fd=folder)


def withdraw(pid: int) -> None:
    """The rank has not run the file: let it run an empty one instead, and leave nothing behind."""
    left = _left.get(pid)
    if left is not None:
        clear(pid)
        _call(pid, "/dev/null", left.owner)


def _switch_user(owner: _User) -> None:
    """In a child, for good."""
    os.setgroups([])
    os.setgid(owner.group)
    os.setuid(owner.user)


@contextlib.contextmanager
def _acting_as(owner: _User) -> Iterator[None]:
    """With the rights of that user to files."""
    if not owner.is_another:
        yield
        return
    groups, group = os.getgroups(), os.getegid()
    try:
        os.setgroups([])
        os.setegid(owner.group)
        os.seteuid(owner.user)
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)
