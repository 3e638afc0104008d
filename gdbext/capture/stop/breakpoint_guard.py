"""Takes breakpoints out of the ranks' code when the debugger that put them there is gone.

A debugger that is killed leaves its breakpoint instructions behind, and the next rank that comes to one dies of
SIGTRAP. This process is told where they stand, a line of JSON at a time: [[pid, [[address, byte], ...]], ...]. The
end of its standard input means that the debugger has ended, in whatever way: then it writes back what is missing.

Started as a script, by whatever Python 3 there is: it imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Dict, List, Tuple

TRAP = 0xCC  # int3

Places = Dict[int, List[Tuple[int, int]]]
"""By descriptor of a /proc/PID/mem: addresses, and the byte that belongs there."""


def open_memories(line: str) -> Places:
    """The memory of each rank, opened beforehand: later there is no time to lose."""
    places: Places = {}
    for pid, bytes_there in json.loads(line):
        try:
            places[os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)] = [tuple(one) for one in bytes_there]
        except OSError:  # it has ended
            continue
    return places


def restore_bytes(places: Places) -> int:
    """Writes the bytes back where an int3 stands in their place; returns how many."""
    count = 0
    for memory, bytes_there in places.items():
        for address, byte in bytes_there:
            try:
                if byte != TRAP and os.pread(memory, 1, address) == bytes([TRAP]):
                    count += os.pwrite(memory, bytes([byte]), address)
            except OSError:  # the rank has ended, or has let go of the library
                continue
    return count


def main() -> int:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # of the debugger's terminal, and its group
        signal.signal(number, signal.SIG_IGN)
    places: Places = {}
    for line in sys.stdin:
        before, places = places, open_memories(line)
        for memory in before:
            os.close(memory)
        print("ready", flush=True)
    restore_bytes(places)
    return 0


if __name__ == "__main__":
    sys.exit(main())
