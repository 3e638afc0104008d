"""Starts the demo engine, waits until it hangs the way it should, and ends it without leftovers.

    with DemoJob("pinned-alloc", ranks=3) as job:
        job.pids  # {0: 4711, 1: 4712, 2: 4713}

`python3 -m tests.inferiors.demo --hang NAME --ranks N` prints one JSON line with the pids when the job is ready and
ends it when its standard input is closed.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
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
from typing import Callable, Dict, List, Mapping, Optional, Set, Tuple

from tests.inferiors.demo_build import build
from tests.inferiors.scenarios import BY_NAME, CULPRIT, SCENARIOS
from tests.polling import DEADLINE, comes_true

WAITS = ("spin", "yield", "poll", "query")
SYNCS = ("stream", "event", "device", "memcpy", "query")
LAUNCHERS = ("spawn", "mpirun")

# job.h: struct job_rank begins here, and is that long; then pid, heartbeat, armed, settled, steps.
RANKS_AT, RANK_SIZE, FIELDS = 64, 64, struct.Struct("5Q")


class DemoFailed(Exception):
    """The job did not come to its hang (says what each rank reported last), or does not end."""


def _die_with_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C at gdb's prompt reaches the whole terminal
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _die_with_parent_on_one_cpu() -> None:
    """For ranks that spin: threads that yield all the time on every CPU keep others from running for a minute and
    more (Linux 6.18 with autogroups, measured)."""
    _die_with_parent()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def state_of(pid: int) -> Tuple[Optional[str], int]:
    """State letter and tracer of a process; (None, 0) when it is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file)
    except OSError:
        return None, 0
    return fields["State"].split()[0], int(fields["TracerPid"])


def start_of(pid: int) -> Optional[str]:
    """When the process was started (clock ticks since boot); None when it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _ends(process: subprocess.Popen[str], end: float) -> bool:
    try:
        process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


class DemoJob:
    """One job of the demo engine, ready (every rank at its place) inside the `with` block.

    `wait`: how threads wait for the device: spin (state R, at the lowest priority), yield, poll (asleep), query.
    `sync`: the call that ends a step: stream, event, device, memcpy, query. `launcher`: spawn or mpirun.
    `pids`: rank -> pid of the processes that are there. Start it in the main thread: a rank dies with the thread
    that started it.
    """

    def __init__(
        self,
        hang: str,
        ranks: int = 3,
        wait: str = "spin",
        sync: str = "stream",
        culprit: int = CULPRIT,
        stripped: bool = False,
        launcher: str = "spawn",
        pool_threads: int = 4,
        beat_us: int = 5000,
        environment: Optional[Mapping[str, str]] = None,
        deadline: float = DEADLINE,
    ) -> None:
        self.scenario = BY_NAME[hang]
        self.ranks, self.culprit = ranks, culprit
        if wait not in WAITS or sync not in SYNCS or launcher not in LAUNCHERS or not 0 <= culprit < ranks:
            raise ValueError("no such wait, sync, launcher or culprit")
        if launcher == "mpirun" and (self.scenario.dies or self.scenario.absent):
            raise ValueError("mpirun ends the whole job when a rank dies, and starts them all")
        if self.scenario.cause == "init-rendezvous" and culprit == 0:
            raise ValueError("without rank 0 there is no unique id: the others would not come to NCCL")
        self._launcher, self._stripped, self._deadline = launcher, stripped, deadline
        self._sleeps = wait == "poll"
        self._arguments = ["--hang", hang, "--wait", wait, "--culprit", str(culprit)]
        self._arguments += ["--pool-threads", str(pool_threads)]
        self._arguments += ["--sync", sync] if wait != "query" else []
        self._environment = {**self.scenario.environment, **(environment or {}), "DEMO_BEAT_US": str(beat_us)}
        self.pids: Dict[int, int] = {}
        self.processes: List[subprocess.Popen[str]] = []
        self._state: Optional[mmap.mmap] = None
        self._pipe = -1
        self._events: Dict[int, Set[str]] = {}
        self._unfinished_line = b""
        self._started: Dict[int, Optional[str]] = {}  # pid -> when it was started

    # -- life --

    def __enter__(self) -> DemoJob:
        self._temporary = tempfile.TemporaryDirectory(prefix="gdbext-demo-")
        folder = Path(self._temporary.name)
        self._log = open(folder / "stderr", "w+")
        try:
            self._prepare(folder)
            self._start(build(self._stripped) / "engine")
            self._until_ready()
        except BaseException:
            self.close()
            raise
        if self._launcher == "spawn":
            self._temporary.cleanup()  # all have opened what they need: even a killed launcher leaves nothing
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, deadline: float = DEADLINE) -> None:
        """Kills what is left, whatever state it is in, and removes the job's files.

        Raises DemoFailed when a rank does not end: its parent is told after the debugger that holds it, which may hang.
        """
        end = time.monotonic() + deadline
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        left = [process.pid for process in self.processes if not _ends(process, end)]
        if self._launcher == "mpirun":
            left += self._end_orphans(end)
        if self._state is not None:
            self._state.close()
            self._state = None
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        self._log.close()
        self._temporary.cleanup()
        if left:
            states = ", ".join(f"{pid} ({state_of(pid)[0]}, traced by {state_of(pid)[1]})" for pid in left)
            raise DemoFailed(f"killed, and not ended after {deadline:g} s: {states}")

    def _end_orphans(self, end: float) -> List[int]:
        """mpirun's ranks are not our children: they die with it, but a little later. Returns those that do not."""
        left = dict(self._started)

        def ended() -> bool:
            for pid, start in list(left.items()):
                if not start or start_of(pid) != start:  # the pid may have become another process's
                    del left[pid]
                    continue
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not left

        comes_true(ended, end - time.monotonic())
        return list(left)

    def _prepare(self, folder: Path) -> None:
        """The files that the ranks meet by: the shared state, and a named pipe for their reports."""
        state, pipe = folder / "state", folder / "report"
        state.write_bytes(bytes(RANKS_AT + RANK_SIZE * self.ranks))
        with open(state, "r+b") as file:
            self._state = mmap.mmap(file.fileno(), RANKS_AT + RANK_SIZE * self.ranks)
        os.mkfifo(pipe)
        self._pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # read-write: no end of file between ranks
        self._environment.update(DEMO_STATE=str(state), DEMO_REPORT=str(pipe))

    def _start(self, engine: Path) -> None:
        if self._launcher == "mpirun":
            self._environment["TMPDIR"] = self._temporary.name  # where mpirun keeps its session
            argv = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(self.ranks)]
            self._spawn([*argv, str(engine), *self._arguments], {})
            return
        for rank in self._started_ranks():
            environment = {"RANK": str(rank), "WORLD_SIZE": str(self.ranks), "LOCAL_RANK": str(rank)}
            argv = [str(engine), "--rank", str(rank), "--world-size", str(self.ranks), *self._arguments]
            self.pids[rank] = self._spawn(argv, environment).pid

    def _spawn(self, argv: List[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            argv,
            env={**os.environ, **self._environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            text=True,
            preexec_fn=_die_with_parent if self._sleeps else _die_with_parent_on_one_cpu,
        )
        self.processes.append(process)
        return process

    def _started_ranks(self) -> List[int]:
        return [rank for rank in range(self.ranks) if not (self.scenario.absent and rank == self.culprit)]

    # -- what the ranks say --

    def _until_ready(self) -> None:
        """Every rank reported that it waits (a healthy one: that it works), or is gone as it should be."""
        end = time.monotonic() + self._deadline
        while not all(self._at_its_place(rank) for rank in self._started_ranks()):
            left = end - time.monotonic()
            if left <= 0 or self._broken():
                raise DemoFailed(f"{self.scenario.name} is not ready: {self._events}; {self._errors()}")
            self._read_reports(min(left, 0.2))
        if self.scenario.dies:
            del self.pids[self.culprit]

    def _at_its_place(self, rank: int) -> bool:
        if self.scenario.dies and rank == self.culprit:
            return self.processes[rank].poll() is not None
        return bool(self._events.get(rank, set()) & {"waiting", "running"})

    def _broken(self) -> bool:
        """A process ended that should not have."""
        dead = [index for index, process in enumerate(self.processes) if process.poll() is not None]
        return bool(dead) and not (self.scenario.dies and dead == [self.culprit])

    def _read_reports(self, timeout: float) -> None:
        if not select.select([self._pipe], [], [], timeout)[0]:
            return
        *lines, self._unfinished_line = (self._unfinished_line + os.read(self._pipe, 65536)).split(b"\n")
        for line in lines:
            event, rank, pid = line.decode().split()
            self._events.setdefault(int(rank), set()).add(event)
            self.pids[int(rank)] = int(pid)
            if event == "attached":
                self._started[int(pid)] = start_of(int(pid))

    def _errors(self) -> str:
        self._log.seek(0)
        return self._log.read()[-2000:]

    # -- proofs --

    def _field(self, rank: int, index: int) -> int:
        assert self._state is not None, "the job is closed"
        return int(FIELDS.unpack_from(self._state, RANKS_AT + RANK_SIZE * rank)[index])

    def heartbeat(self, rank: int) -> int:
        """A counter that a thread of the rank keeps counting up while the process is not stopped."""
        return self._field(rank, 1)

    def steps(self, rank: int) -> int:
        """Decoding steps the rank has finished."""
        return self._field(rank, 4)

    def alive_progress(self, pid: int, timeout: float = DEADLINE) -> bool:
        """The process runs on: its heartbeat advances, more than once, within the timeout (seconds)."""
        rank = next(rank for rank, other in self.pids.items() if other == pid)
        return self._advances(lambda: self.heartbeat(rank), timeout)

    def steps_progress(self, rank: int, timeout: float = DEADLINE) -> bool:
        """The rank goes on decoding."""
        return self._advances(lambda: self.steps(rank), timeout)

    @staticmethod
    def _advances(counter: Callable[[], int], timeout: float) -> bool:
        first = counter()
        return bool(comes_true(lambda: counter() >= first + 2, timeout))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m tests.inferiors.demo", description=__doc__.splitlines()[0])
    parser.add_argument("--hang", choices=sorted(BY_NAME), default="pinned-alloc", metavar="NAME", help="see --list")
    parser.add_argument("--ranks", type=int, default=3, metavar="N")
    parser.add_argument("--culprit", type=int, default=CULPRIT, metavar="RANK")
    parser.add_argument("--wait", choices=WAITS, default="spin", help="how threads wait for the device")
    parser.add_argument("--sync", choices=SYNCS, default="stream", help="the call that ends a step")
    parser.add_argument("--launcher", choices=LAUNCHERS, default="spawn")
    parser.add_argument("--stripped", action="store_true", help="an engine and an NCCL without symbols")
    parser.add_argument("--list", action="store_true", help="the hangs, with what a diagnosis should say")
    return parser.parse_args()


def _list() -> None:
    width = max(len(scenario.name) for scenario in SCENARIOS)
    for scenario in SCENARIOS:
        print(f"{scenario.name:{width}}  {scenario.cause:32}  {scenario.kind or 'no process'}")


def _stop(*_: object) -> None:
    raise SystemExit(0)


def main() -> int:
    options = vars(_arguments())
    if options.pop("list"):
        _list()
        return 0
    signal.signal(signal.SIGTERM, _stop)
    try:
        with DemoJob(**options) as job:
            scenario = job.scenario
            answer = {
                "hang": scenario.name,
                "pids": {str(rank): pid for rank, pid in sorted(job.pids.items())},
                "expected": {
                    "cause": scenario.cause,
                    "culprits": scenario.culprits(job.culprit),
                    "victims": scenario.victims(job.ranks, job.culprit),
                },
            }
            print(json.dumps(answer), flush=True)
            sys.stdin.read()
    except (DemoFailed, RuntimeError, ValueError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
