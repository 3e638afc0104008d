"""Builds and runs capture_threads.c: a process to be stopped, copied and let go."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable, List, Optional, Sequence, Tuple

from gdbext.capture.memory.process_memory import ProcessMemory
from tests.polling import wait_until

HERE = Path(__file__).resolve().parent


def build(*flags: str) -> str:
    """Path of the program, compiled when its source is new."""
    source = HERE / "capture_threads.c"
    mark = hashlib.sha256(source.read_bytes() + " ".join(flags).encode()).hexdigest()[:12]
    program = HERE / "build" / f"capture_threads-{mark}"
    if not program.exists():
        program.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as folder:
            made = os.path.join(folder, "made")
            command = ["gcc", "-O2", "-g", "-pthread", "-Wall", "-Wextra", *flags, "-o", made, str(source)]
            subprocess.run(command, check=True)
            os.replace(made, program)  # whoever builds at the same time makes the same file
    return str(program)


def as_nobody(work: Callable[[], str]) -> str:
    """The text that `work()` gives in a child process without privileges."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading) as stream:
        return stream.read()


class CaptureProcess:
    """A running capture_threads with some threads; ends with the `with` block.

    `program`: another build or copy of it; `wrapper`: a command that becomes it by exec; `options` go to Popen.
    """

    def __init__(
        self,
        threads: int = 8,
        busy: int = 0,
        depth: int = 0,
        mode: str = "",
        program: Optional[str] = None,
        wrapper: Sequence[str] = (),
        **options: Any,
    ) -> None:
        self.program = program or build()
        self._process = subprocess.Popen(
            [*wrapper, self.program, str(threads), str(busy), str(depth), mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
        self.pid = self._process.pid
        try:
            self.wait_ready()
        except BaseException:
            self.__exit__()
            raise

    def wait_ready(self) -> None:
        """Wait until every thread is where it shall be."""
        assert self._process.stdout is not None
        self._hearts = int(self._process.stdout.readline().split()[1], 16)

    def __enter__(self) -> CaptureProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def tell(self, line: str) -> None:
        """Send a line, without waiting for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def ask(self, line: str = "") -> int:
        """Send a line; the number of real-time signals that the process has got."""
        self.tell(line)
        assert self._process.stdout is not None
        return int(self._process.stdout.readline().split()[1])

    def kill(self) -> None:
        """End it at once; it is a zombie then."""
        self._process.kill()
        wait_until(lambda: self.state() == "Z")

    def tids(self) -> List[int]:
        return [int(name) for name in os.listdir(f"/proc/{self.pid}/task")]

    def state(self, tid: Optional[int] = None) -> str:
        """State letter of a thread, of the main thread when not said."""
        text = Path(f"/proc/{self.pid}/task/{tid or self.pid}/stat").read_text()
        return text.rpartition(")")[2].split()[0]

    def wait_asleep(self, running: int = 0) -> None:
        """Wait until all threads but the heartbeats and `running` others sleep; a busy machine takes a while."""
        others = [tid for tid in self.tids() if self.name(tid) != "heartbeat"]
        wait_until(lambda: [self.state(tid) for tid in others].count("S") == len(others) - running)

    def name(self, tid: int) -> str:
        return Path(f"/proc/{self.pid}/task/{tid}/comm").read_text().strip()

    def hearts(self) -> List[Tuple[int, int, int]]:
        """Beats, begin and end of the longest gap (CLOCK_MONOTONIC nanoseconds), of each of the two heartbeats."""
        data = ProcessMemory(self.pid).read(self._hearts, 48)
        assert data is not None
        return list(struct.iter_unpack("<3Q", data))

    def assert_free(self) -> None:
        """It is traced by nobody and goes on."""
        wait_until(lambda: not self._tracers())
        beats = self.hearts()[0][0]
        wait_until(lambda: self.hearts()[0][0] > beats)

    def _tracers(self) -> List[str]:
        return [line for tid in self.tids() for line in self._status(tid) if line.split()[1] != "0"]

    def _status(self, tid: int) -> List[str]:
        try:
            lines = Path(f"/proc/{self.pid}/task/{tid}/status").read_text().splitlines()
        except OSError:
            return []  # it ended meanwhile
        return [line for line in lines if line.startswith("TracerPid:")]
