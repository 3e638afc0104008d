"""When gdb is killed: no breakpoint stays in the code of a rank."""

from __future__ import annotations

import json
import subprocess
from typing import Dict, List, Optional, Sequence, Tuple

import gdb

from gdbext.capture.stop import breakpoint_guard
from gdbext.discovery.proc.shell_python import interpreters
from gdbext.inside_gdb.base import compat

Places = Dict[Tuple[int, int], Optional[int]]
"""By pid and address: the byte of the program."""


class CodeRepair:
    """A process that lives as long as gdb and then mends the ranks' code: capture/stop/breakpoint_guard.py."""

    def __init__(self) -> None:
        self._process: Optional[subprocess.Popen[str]] = None
        self._known: Places = {}

    def start(self) -> bool:
        """Whether it is there."""
        if self._process is not None and self._process.poll() is None:
            return True
        for python in interpreters():
            try:
                self._process = subprocess.Popen(
                    [python, "-I", "-S", breakpoint_guard.__file__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,  # the end of gdb's terminal is not its own
                )
            except OSError:
                continue
            self._known = {}
            return True
        return False

    def watch(self, points: Sequence[gdb.Breakpoint]) -> None:
        """These breakpoints and no others are in the ranks' code when they run."""
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            return
        wanted = _places(points)
        if set(wanted) == set(self._known):  # asked at each hit
            return
        self._known = {place: self._known.get(place) or _byte(place) for place in wanted}
        by_pid: Dict[int, List[Tuple[int, int]]] = {}
        for (pid, address), byte in self._known.items():
            if byte is not None:
                by_pid.setdefault(pid, []).append((address, byte))
        try:
            self._process.stdin.write(json.dumps(sorted(by_pid.items())) + "\n")
            self._process.stdin.flush()
            self._process.stdout.readline()  # it has opened what it needs
        except OSError:  # killed: the next llm-break starts another
            self._process = None


def _places(points: Sequence[gdb.Breakpoint]) -> List[Tuple[int, int]]:
    """Pids and addresses."""
    pids = {inferior.num: inferior.pid for inferior in gdb.inferiors() if inferior.pid}
    return [
        (pids[number], address)
        for point in points
        for address, numbers in compat.locations(point)
        for number in numbers
        if number in pids
    ]


def _byte(place: Tuple[int, int]) -> Optional[int]:
    """Of the program: gdb shows its own breakpoints as what they stand in place of."""
    inferior = next(one for one in gdb.inferiors() if one.pid == place[0])
    try:
        return bytes(inferior.read_memory(place[1], 1))[0]
    except (gdb.error, MemoryError):
        return None
