"""What runs in the helper: `python -c` of this module's `main`. Reads a job and chunks on stdin, answers on stdout.

Protocol: the helper writes one line of JSON {"numpy": version or null, "python": ..}. It gets one line of JSON, the
job, then frames: a header of four numbers (start, and the lengths of data, holes and other data), then these bytes. A
header with start = END ends the stream; the answer is one line, the result as JSON.
"""

from __future__ import annotations

import json
import platform
import signal
import struct
import sys
from typing import IO, List, Optional

from gdbext.analysis.tensors.arithmetic.jobs import Work
from gdbext.analysis.tensors.decoding.numpy_module import load_numpy

HEADER = struct.Struct("<4Q")
END = (1 << 64) - 1


def main() -> None:
    """Serve one job; returns when the input ends, whatever the reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the debugger's; it ends us by closing the pipe
    numpy = load_numpy()
    hello = {"numpy": None if numpy is None else numpy.__version__, "python": platform.python_version()}
    _say(hello)
    stdin = sys.stdin.buffer
    line = stdin.readline()
    if not line:
        return
    work = Work(json.loads(line), numpy)
    while True:
        header = _read(stdin, HEADER.size)
        if header is None:
            return
        start, *lengths = HEADER.unpack(header)
        if start == END:
            break
        parts: List[Optional[bytes]] = [_read(stdin, length) if length else None for length in lengths]
        work.feed(start, parts[0] or b"", parts[1], parts[2])
    _say(work.result())


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _read(stream: IO[bytes], size: int) -> Optional[bytes]:
    data = stream.read(size)
    return data if len(data) == size else None
