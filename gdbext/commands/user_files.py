"""Files whose names the user gave: private, whole or not there at all, and never in the place of something else."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from pathlib import Path
from typing import BinaryIO, Iterator, Optional

from gdbext.model.errors import GdbextError, UsageError, refused_as
from gdbext.model.text.digits import is_whole

_FORCE = "choose another name; --force overwrites it"


def check_writable(name: str, force: bool = False) -> None:
    """Said before the work, so that its answer is not lost: whether `name` can be written.

    Raises UsageError for a name that is taken (with `force` only by something else than a file), GdbextError where
    nothing can be written.
    """
    path = _path(name)
    if _descriptor_of(path) is not None:
        return
    if path.is_symlink():
        raise UsageError(f"{name} is a symbolic link, which gdbext does not follow", "name the file itself")
    if os.path.lexists(path):
        _check_taken(path, name, force)
    folder = path.absolute().parent
    if not os.access(folder, os.W_OK | os.X_OK):
        why = "is not writable" if folder.is_dir() else "is not a folder"
        raise GdbextError(f"cannot write {name}: {path.parent} {why}")


def _check_taken(path: Path, name: str, force: bool) -> None:
    mode = os.lstat(path).st_mode
    if stat.S_ISREG(mode) and not force:
        raise UsageError(f"{name} exists", _FORCE)
    if not (stat.S_ISREG(mode) or _is_stream(mode)):
        raise UsageError(f"{name} exists and is not a file", "choose another name")


def write_private(name: str, text: str, force: bool = False, mode: int = 0o600) -> None:
    """Write a file that only its owner can read: stacks may hold secrets. Raises as `new_file` does."""
    with new_file(name, force, mode) as file:
        file.write(text.encode("utf-8", "surrogateescape"))


@contextlib.contextmanager
def new_file(name: str, force: bool = False, mode: int = 0o600) -> Iterator[BinaryIO]:
    """A file to be filled, which gets its name when the block ends well: whoever is killed before leaves nothing.

    A pipe, a character device and a descriptor of ours (`/dev/stdout`, `>(command)`) are written to as they are.
    Raises UsageError for a name that is taken (without `force`) or is a symbolic link, GdbextError where the system
    refuses.
    """
    check_writable(name, force)
    path = _path(name)
    with refused_as(f"cannot write {name}"):
        stream = _stream(path)
        with _draft(path, name, force, mode) if stream is None else os.fdopen(stream, "wb") as file:
            yield file


def append_private(name: str, text: str) -> None:
    """Put text behind what is in a file. Raises as `new_file` does; a file that exists is extended."""
    check_writable(name, force=True)
    path = _path(name)
    with refused_as(f"cannot write {name}"):
        stream = _stream(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600) if stream is None else stream, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))


def _path(name: str) -> Path:
    return Path(os.path.expanduser(name))


def _is_stream(mode: int) -> bool:
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _descriptor_of(path: Path) -> Optional[int]:
    """The descriptor of ours that a name stands for: those of the kernel are links, and lead nowhere else."""
    named = {"/dev/stdout": 1, "/dev/stderr": 2}.get(str(path))
    if named is None and is_whole(path.name) and os.path.realpath(path.parent) == os.path.realpath("/proc/self/fd"):
        named = int(path.name)
    return named


def _stream(path: Path) -> Optional[int]:
    """An open descriptor of what is not a file; None for a file, or where there is nothing yet. Raises OSError."""
    own = _descriptor_of(path)
    if own is not None:
        return os.dup(own)
    if not os.path.lexists(path) or not _is_stream(os.lstat(path).st_mode):
        return None
    stream = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY)
    if not _is_stream(os.fstat(stream).st_mode):  # somebody has put a file there since
        os.close(stream)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    return stream


@contextlib.contextmanager
def _draft(path: Path, name: str, force: bool, mode: int) -> Iterator[BinaryIO]:
    """A file without a name, or where the file system has none such, with one that nobody looks for."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        nameless = _nameless(path.parent, mode)
        with nameless or _created(draft, mode) as file:
            yield file
            file.flush()
            if nameless is not None:
                _name(file, draft, mode)
        (os.replace if force else _move)(draft, path)
    except FileExistsError:
        raise UsageError(f"{name} exists", _FORCE) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)


def _nameless(folder: Path, mode: int) -> Optional[BinaryIO]:
    try:
        return os.fdopen(os.open(folder, os.O_RDWR | os.O_TMPFILE, mode), "w+b")
    except OSError:
        return None


def _created(path: Path, mode: int) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb")


def _name(file: BinaryIO, path: Path, mode: int) -> None:
    """Give a nameless file a name; where the file system cannot, copy it. Raises OSError."""
    descriptor = file.fileno()
    try:
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)  # with a folder it follows the link
    except OSError:
        file.seek(0)
        with _created(path, mode) as copy:
            shutil.copyfileobj(file, copy)


def _move(draft: Path, path: Path) -> None:
    """To a name that is free, without a moment in which it could take the place of another. Raises FileExistsError."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError from None
        os.rename(draft, path)
