"""gdbext as one file: what Python runs of gdbext.pyz.

gdb cannot source what lies in an archive, and helpers of ours are started by their paths. So the file unpacks itself
once, into the user's cache (GDBEXT_CACHE=off: into a folder that goes away at the end), and runs from there.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import shutil
import sys
import tempfile
import time
import zipfile

from gdbext.capture.user_cache import folder_of  # out of the archive

_UNUSED = 30 * 24 * 3600  # seconds after which the folder of another build is removed
_PREFIX = "one-file-"


def main() -> int:
    if sys.version_info < (3, 8):  # noqa: UP036 - whatever Python a host has
        sys.exit("gdbext needs Python 3.8 or newer; this is {}.{}".format(*sys.version_info))
    archive = os.path.abspath(sys.argv[0] if zipfile.is_zipfile(sys.argv[0]) else os.path.dirname(__file__))
    cache = folder_of()
    if cache is None and sys.argv[1:2] == ["gdbinit"]:
        sys.exit("gdbext: gdb needs a folder that stays: set HOME or XDG_CACHE_HOME, without GDBEXT_CACHE=off")
    with contextlib.ExitStack() as held:
        try:
            if cache is None:
                folder = held.enter_context(tempfile.TemporaryDirectory(prefix="gdbext-"))
                unpack(archive, folder)
            else:
                folder = unpack_archive(archive, cache)
        except (OSError, zipfile.BadZipFile) as error:
            sys.exit(f"gdbext: cannot unpack {archive}: {error}")
        return run(folder)


def unpack_archive(archive: str, cache: str) -> str:
    """The folder of this build: made by the first who needs it, whole or not at all."""
    with zipfile.ZipFile(archive) as members:
        build = members.read("ONE_FILE").decode().strip()
    folder = os.path.join(cache, _PREFIX + build[:16])
    if _holds(folder, build):
        os.utime(folder)
        return folder
    with open(os.path.join(cache, _PREFIX + "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _holds(folder, build):
            shutil.rmtree(folder, ignore_errors=True)  # damaged
            draft = tempfile.mkdtemp(prefix=".new-" + _PREFIX, dir=cache)  # 0700
            try:
                unpack(archive, draft)
                os.rename(draft, folder)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
            _forget_old(cache, folder)
    return folder


def _holds(folder: str, build: str) -> bool:
    try:
        with open(os.path.join(folder, "ONE_FILE")) as marker:
            return marker.read().strip() == build
    except OSError:
        return False


def unpack(archive: str, folder: str) -> None:
    """All members, private to this user."""
    before = os.umask(0o077)
    try:
        with zipfile.ZipFile(archive) as members:
            members.extractall(folder)
    finally:
        os.umask(before)


def _forget_old(cache: str, current: str) -> None:
    for entry in list(os.scandir(cache)):
        with contextlib.suppress(OSError):
            ours = entry.name.startswith((_PREFIX, ".new-" + _PREFIX)) and entry.is_dir(follow_symlinks=False)
            if ours and entry.path != current and time.time() - entry.stat(follow_symlinks=False).st_mtime > _UNUSED:
                shutil.rmtree(entry.path, ignore_errors=True)


def run(folder: str) -> int:
    """Run gdbext from there: nothing is left of what was imported out of the archive."""
    for name in [name for name in sys.modules if name.split(".")[0] == "gdbext"]:
        del sys.modules[name]
    sys.path[0] = folder
    status: int = importlib.import_module("gdbext.__main__").main()
    return status


if __name__ == "__main__":
    sys.exit(main())
