"""Says whom this process held, should it end while it holds them."""

from __future__ import annotations

import mmap
import time
from pathlib import Path
from typing import Sequence

HELD = "held"
"""Name of the file with the note: `SINCE LIMIT PIDS`: since when and for how long at most, in hundredths of a second of
/proc/uptime, which a shell can read."""
_SIZE = 256  # bytes of the note, with its line break
_NAMED = 8  # pids in it


class Note:
    """A line in a file that says whom we held when we ended: the janitor of the folder tells the user (capture/
    private_folder.py). It costs the stop nothing: the file is mapped."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError."""
        path = folder / HELD
        path.write_bytes(b"\n" * _SIZE)
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), _SIZE)
        uptime = float(Path("/proc/uptime").read_text("ascii").split()[0])  # a container's own, where lxcfs makes it
        self._offset = uptime - time.clock_gettime(time.CLOCK_BOOTTIME)

    def holds(self, pids: Sequence[int], limit: float) -> None:
        since = time.clock_gettime(time.CLOCK_BOOTTIME) + self._offset
        names = ", ".join(map(str, pids[:_NAMED])) + (f" and {len(pids) - _NAMED} more" if len(pids) > _NAMED else "")
        self._page[:] = f"{int(since * 100)} {int(limit * 100) - 1} {names}".encode().ljust(_SIZE - 1) + b"\n"

    def free(self) -> None:
        self._page[:] = b"\n" * _SIZE
