"""Starts torch_rank.py by torchrun, waits until every rank is at its place, and ends it without leftovers."""

import contextlib
import ctypes
import hashlib
import mmap
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.inferiors.demo import start_of
from tests.polling import DEADLINE

HERE = Path(__file__).parent
RING = 65536  # as in torch_threads.c
PERIOD_NS, LATE_NS = 1_000_000, 600_000
HEAD = struct.Struct("<QQqq")
MEMORY = Path("/dev/shm")  # pages that are written to a disk now and then would halt the heart, too


def build_library():
    """Path of torch_threads.so, built once per content."""
    source = HERE / "torch_threads.c"
    target = HERE / "build" / f"torch_threads-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}.so"
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        new = target.with_suffix(f".{os.getpid()}")
        subprocess.run(["gcc", "-O2", "-fPIC", "-shared", "-pthread", "-o", new, source], check=True)
        os.rename(new, target)
    return target


def state_of(pid):
    """(state letter, TracerPid) of a process, or (None, None) when it is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file)
    except OSError:
        return None, None
    return fields["State"].split()[0], int(fields["TracerPid"])


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Heartbeat:
    """What a heartbeat of torch_threads.c has written into its file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self._record = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.cpu, self.priority = HEAD.unpack_from(self._record)[2:]  # -1: not pinned; 0: no real time priority

    @property
    def beats(self):
        """How often it has beaten."""
        return HEAD.unpack_from(self._record)[0]

    def goes_on(self, deadline=DEADLINE):
        """Whether it advances within `deadline` seconds."""
        before, until = self.beats, time.monotonic() + deadline
        while time.monotonic() < until:
            if self.beats > before + 3:
                return True
            select.select([], [], [], 0.002)
        return False

    def missed(self, since, to):
        """(from, to) in ns: when a beat was due and when it came, of each late one that touches [since, to].

        `since` and `to` are monotonic seconds.
        """
        count = HEAD.unpack_from(self._record)[1]
        numbers = range(max(0, count - RING), count)
        pairs = [struct.unpack_from("<QQ", self._record, HEAD.size + 16 * (i % RING)) for i in numbers]
        return [(a, b) for a, b in pairs if b > since * 1e9 and a < to * 1e9]


def standstill(missed):
    """Milliseconds that a process stood still when beats were missing for so many ns.

    A stop begins anywhere between two beats, so it began half a period on average before the first missing one was
    due; the rest of the error is at most half a period up or down.
    """
    return (missed + PERIOD_NS / 2) / 1e6


class TorchJob:
    """`with TorchJob(4) as job:` - `job.pids[rank]`, `job.hearts[rank]`; `job.gaps(rank, ...)` in milliseconds."""

    def __init__(self, ranks, mode="missing", threads=60, spinning=0, deadline=DEADLINE):
        self._arguments = ["--mode", mode, "--threads", str(threads), "--spinning", str(spinning)]
        self._ranks, self._mode, self._deadline = ranks, mode, deadline

    def __enter__(self):
        self._temporary = tempfile.TemporaryDirectory(
            prefix="gdbext-torch-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None
        )
        self.folder = Path(self._temporary.name)
        environment = {**os.environ, "OMP_NUM_THREADS": "4", "TORCHELASTIC_ERROR_FILE": ""}
        argv = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(self._ranks)]
        argv += ["--master-port", str(free_port()), str(HERE / "torch_rank.py"), *self._arguments]
        argv += ["--library", str(build_library()), str(self.folder)]
        self._log = open(self.folder / "log", "w")
        cpus = {max(os.sched_getaffinity(0))} if self._mode == "healthy" else os.sched_getaffinity(0)
        self.launcher = subprocess.Popen(
            argv,
            env=environment,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            preexec_fn=lambda: (die_with_parent(), os.sched_setaffinity(0, cpus)),  # who computes leaves a CPU to us
        )
        try:
            self._wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _wait(self):
        """inotify would be an event too; the folder's few files are looked at 20 times a second."""
        until = time.monotonic() + self._deadline
        markers = [self.folder / f"rank.{rank}" for rank in range(self._ranks)]
        while not all(marker.exists() for marker in markers):
            if self.launcher.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
            select.select([], [], [], 0.05)
        self.pids = [int(marker.read_text()) for marker in markers]
        self._starts = {pid: start_of(pid) for pid in self.pids}
        self.hearts = [Heartbeat(self.folder / f"heartbeat.{rank}") for rank in range(self._ranks)]
        if self._mode == "missing":
            for pid in self.pids:
                self._wait_settled(pid, until)

    @staticmethod
    def _wait_settled(pid, until):
        """The marker is written just before the wait: go on when the main thread has not run for a while."""
        quiet, last = 0, None
        while quiet < 5 and time.monotonic() < until:
            switches = Path(f"/proc/{pid}/task/{pid}/status").read_text().partition("voluntary_ctxt_switches")[2]
            quiet = quiet + 1 if switches == last else 0
            last = switches
            select.select([], [], [], 0.05)

    def __exit__(self, *error):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.launcher.pid, number)
                self.launcher.wait(5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        for pid, start in getattr(self, "_starts", {}).items():
            with contextlib.suppress(ProcessLookupError):
                if start and start_of(pid) == start:  # by now it may be another process, of a test beside this one
                    os.kill(pid, signal.SIGKILL)
        self.launcher.wait()  # it was killed, and ends when it gets a processor
        self._log.close()
        self._temporary.cleanup()

    def goes_on(self, rank):
        """Whether the heartbeat of a rank advances."""
        return self.hearts[rank].goes_on()

    def gaps(self, rank, since, to):
        """Milliseconds of each standstill of a rank that touches [since, to], those of the whole machine, too."""
        return [standstill(b - a) for a, b in self.hearts[rank].missed(since, to)]


def free_port():
    """A port nobody listens on. The kernel gives it to nobody who asks for any: it is still free when it is used."""
    import random
    import socket

    given_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.SystemRandom().sample(range(10_000, 29_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port if port < given_from else 0))
            return probe.getsockname()[1]
    raise OSError("no port is free")
