"""Tells the machine's own gaps from stops: a process that nobody looks at beats beside the ranks, on the same CPUs.

A virtual machine is away now and then, and a heartbeat inside of a rank cannot tell that from a stop of the rank. Nor
has a tool that runs for three seconds earned more of it than one that runs for a fifth. The bystander has a heartbeat
on each CPU on which a rank has one, due at the same moments. Its real time priority is above that of all ordinary work,
so the tools do not delay it: what it misses, the machine took, and that time is no stop of the ranks on the same CPU.
Its priority is below that of the ranks, so where it beats, a rank that was not stopped has beaten before. Were it the
other way round, one that comes first could beat before the machine is away again, and the rank looked stopped.
"""

import ctypes
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.inferiors.torch_job import LATE_NS, Heartbeat, build_library, die_with_parent, standstill

REPOSITORY = Path(__file__).parents[2]
PRIORITY = 2  # of SCHED_FIFO; below that of the ranks in torch_rank.py, above that which gdbext takes while it copies
MOST_RANKS = 16  # that may have their heartbeats on one CPU: they need some 20 us each, and come first
LOCK_NOW = 1  # MCL_CURRENT: a page that must be fetched first would look like a gap of the machine


@dataclass
class Standstill:
    """Milliseconds that the worst rank stood still, the longest time and in sum; raw: with the machine's gaps."""

    longest: float = 0.0
    total: float = 0.0
    raw_longest: float = 0.0
    raw_total: float = 0.0


def overlap(one, others):
    """How much of an interval the others cover, which do not overlap each other."""
    return sum(max(0, min(one[1], end) - max(one[0], begin)) for begin, end in others)


def left(missed, machine):
    """How long beats were missing when those of the machine were not, for each interval, in ns.

    What is left counts where the heartbeat would have noted it by itself.
    """
    lengths = [one[1] - one[0] - overlap(one, machine) for one in missed]
    return [length for length in lengths if length > LATE_NS]


def worst(ranks):
    """The Standstill of ranks. `ranks`: when each missed beats, and when the machine did on its CPU, in ns."""
    raw = [[end - begin for begin, end in missed] for missed, _ in ranks]
    figures = []
    for lengths in ([left(*one) for one in ranks], raw):
        found = [[standstill(length) for length in one] for one in lengths if one]
        figures += [max(map(max, found), default=0.0), max(map(sum, found), default=0.0)]
    return Standstill(*figures)


class Bystander:
    """`with Bystander(job) as bystander:` - `bystander.standstill(since, to)` of the ranks of a TorchJob."""

    def __init__(self, job):
        self._ranks, self._folder = job.hearts, job.folder
        self._cpus = sorted({heart.cpu for heart in job.hearts if heart.cpu >= 0})

    def __enter__(self):
        argv = [sys.executable, "-m", "tests.bench.bystander", build_library(), self._folder, *map(str, self._cpus)]
        self._process = subprocess.Popen(
            argv, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent
        )
        if self._process.stdout.readline() != b"beats\n":
            self.__exit__()
            raise RuntimeError("the bystander does not beat")
        self._hearts = {cpu: Heartbeat(path_of(self._folder, cpu)) for cpu in self._cpus}
        self.why_raw = why_raw(self._ranks, self._hearts)
        return self

    def __exit__(self, *error):
        self._process.kill()
        self._process.communicate()

    def standstill(self, since, to, patience=5.0):
        """The Standstill between two moments (monotonic seconds), or None when a rank does not go on now."""
        if not all(heart.goes_on(patience) for heart in (*self._ranks, *self._hearts.values())):
            return None  # each is waited for, so that a gap that lasts until now is seen as well
        ranks = []
        for heart in self._ranks:
            missed, machine = heart.missed(since, to), []
            if missed and not self.why_raw:
                machine = self._hearts[heart.cpu].missed(missed[0][0] / 1e9, missed[-1][1] / 1e9)
            ranks.append((missed, machine))
        return worst(ranks)


def why_raw(ranks, bystander):
    """Why the gaps of the machine cannot be told apart, or "". `bystander`: its heartbeat on each CPU."""
    if any(heart.cpu not in bystander for heart in ranks) or any(cpu != one.cpu for cpu, one in bystander.items()):
        return "a heartbeat cannot have a CPU of its own"
    if any(not 0 < bystander[heart.cpu].priority < heart.priority for heart in ranks):
        return "real time priority is not permitted"
    if len(ranks) > MOST_RANKS * len(bystander):
        return "there are too many ranks for each CPU"
    return ""


def raw_note(why):
    """What a reader of raw figures must know."""
    return f"All stops are with the machine's own gaps, which could not be told apart: {why}."


def path_of(folder, cpu):
    return Path(folder) / f"bystander.{cpu}"


def main():
    """Beats until it is killed, or whoever started it is gone."""
    library, folder, *cpus = sys.argv[1:]
    extra = ctypes.CDLL(library)
    for cpu in map(int, cpus):
        if extra.start_heartbeat(str(path_of(folder, cpu)).encode(), cpu, PRIORITY):
            raise SystemExit("no heartbeat")
    ctypes.CDLL(None).mlockall(LOCK_NOW)
    print("beats", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
