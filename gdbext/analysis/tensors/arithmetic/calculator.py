"""Who does the arithmetic: numpy here, a Python with numpy beside us, or plain Python. Large data only need choose."""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
from typing import Any, Dict, List, Mapping, Optional, Sequence

import gdbext
from gdbext.analysis.tensors.arithmetic.helper_process import END, HEADER
from gdbext.analysis.tensors.arithmetic.jobs import Job, Work
from gdbext.analysis.tensors.decoding.numpy_module import load_numpy
from gdbext.model.errors import GdbextError

LARGE = 4 << 20
"""Bytes of elements from which on it pays to import numpy (0.1 s) or to start a helper (0.2 s)."""

HELLO_SECONDS = 20.0
_F_SETPIPE_SZ = 1031  # fcntl has a name for it from Python 3.10 on
_PIPE_BYTES = 1 << 20  # a chunk: both sides work at the same time. The kernel's default limit for any user
_PARENT = os.path.dirname(os.path.dirname(os.path.abspath(gdbext.__file__)))
_HELPER = "from gdbext.analysis.tensors.arithmetic.helper_process import main; main()"
_CODE = f"import sys; sys.path.insert(0, {_PARENT!r}); {_HELPER}"


class Here:
    """Work in this interpreter."""

    def __init__(self, job: Job, numpy: Any) -> None:
        self._work = Work(job, numpy)
        self.feed = self._work.feed
        self.result = self._work.result
        self.by = "pure Python" if numpy is None else f"numpy {numpy.__version__}"

    def close(self) -> None:
        """Nothing to end."""


class Calculator:
    """Starts jobs where they are done fastest.

    `pythons` are interpreters that may have numpy, best first; `numpy_here` False keeps numpy out of this process.
    """

    def __init__(self, pythons: Sequence[str] = (), numpy_here: bool = True) -> None:
        self._pythons = list(pythons)
        self._numpy_here = numpy_here

    def numpy_for(self, nbytes: int) -> Any:
        """numpy of this interpreter, when the data is large enough to load it; else None."""
        return load_numpy() if self._numpy_here and nbytes >= LARGE else None

    def start(self, job: Job, nbytes: int) -> Any:
        """Something with `feed`, `result`, `close` (as `Work`) and `by`, which says who works."""
        numpy = self.numpy_for(nbytes)
        if numpy is None and nbytes >= LARGE:
            for python in list(self._pythons):
                helper = Helper.started(python, job)
                if helper is not None:
                    return helper
                self._pythons.remove(python)
        return Here(job, numpy)


class Helper:
    """Work in another interpreter, fed through a pipe. It ends with us, and at the latest by `close`."""

    def __init__(self, process: subprocess.Popen[bytes], by: str) -> None:
        self._process = process
        self.by = by

    @classmethod
    def started(cls, python: str, job: Job) -> Optional[Helper]:
        """A helper that has numpy and knows its job; None when this interpreter cannot be one."""
        try:
            process = subprocess.Popen(
                [python, "-c", _CODE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                start_new_session=True,
            )
        except OSError:
            return None
        _widen(process)
        helper = cls(process, "")
        try:
            hello = helper._hello()
            version = hello.get("numpy")
            if version:
                helper.by = f"numpy {version} of {python}"
                helper._write(json.dumps(job).encode() + b"\n")
                return helper
        except (OSError, ValueError, GdbextError):
            pass
        except BaseException:
            helper.close()
            raise
        helper.close()
        return None

    def _hello(self) -> Mapping[str, Any]:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], HELLO_SECONDS)[0]:
            raise ValueError("too slow to be of use")
        answer = json.loads(self._process.stdout.readline())
        if not isinstance(answer, dict):
            raise ValueError("not a helper")
        return answer

    def feed(self, start: int, data: bytes, holes: Optional[bytes] = None, other: Optional[bytes] = None) -> None:
        """As `Work.feed`. Raises `GdbextError` when the helper has died."""
        parts: List[bytes] = [data, holes or b"", other or b""]
        self._write(HEADER.pack(start, *map(len, parts)))
        for part in parts:
            if part:
                self._write(part)

    def result(self) -> Dict[str, Any]:
        """As `Work.result`."""
        self._write(HEADER.pack(END, 0, 0, 0))
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise self._died()
        result: Dict[str, Any] = json.loads(line)
        return result

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
        except OSError:
            raise self._died() from None

    def _died(self) -> GdbextError:
        return GdbextError(f"the helper that computes ({self.by}) ended unexpectedly", "try again")

    def close(self) -> None:
        """End the helper, also in the middle of its work."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:  # what was not yet written has no reader any more
                pass


def _widen(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    try:
        fcntl.fcntl(process.stdin.fileno(), _F_SETPIPE_SZ, _PIPE_BYTES)
    except OSError:  # the user's pipes are large enough already in sum: the small one is only slower
        pass


def _environment() -> Dict[str, str]:
    """Ours, without what a debugger may have set for its own Python."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
