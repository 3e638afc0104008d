"""What happens in a round: drawn from the seed and the number of the round, and from nothing else."""

import random
from dataclasses import dataclass, replace
from typing import Optional

BEHAVIOURS = ("threads", "forks", "execs", "libraries", "maps", "spins", "deep")
COMMANDS = (*["diagnose"] * 3, "together", "stacks", "locks", "comms", "ranks", "watch", "attached", "attached")
SIGNALS = ("KILL", "TERM", "INT", "HUP")
PLACES = ("full-tmp", "tiny-tmp", "full-out", "no-tmp", "read-only-home", "no-home")
MIB = 1 << 20


@dataclass(frozen=True)
class Shot:
    """One fault at one moment, in seconds after `mark`: the start of the command, or the first sight of its gdb."""

    at: float
    mark: str  # start, gdb
    who: str  # front, gdb, group (all of the command), rank N
    what: str  # KILL, TERM, INT, HUP, STOP, CONT

    def __str__(self):
        return f"{self.what}>{self.who}@{self.mark}+{self.at:.2f}"


@dataclass(frozen=True)
class Plan:
    """One round."""

    number: int
    ranks: tuple  # of each: its behaviours, or ("python",)
    waiters: int
    command: str
    select: str  # pids, pgid, name
    json: bool
    keep: Optional[str]  # save, bundle
    once: bool
    gdb: str  # distribution, newest
    shots: tuple = ()
    place: Optional[str] = None
    limits: tuple = ()  # (name, value)
    second: Optional[str] = None  # another command on the same job at the same time
    clock: Optional[str] = None  # jumps, other-namespace
    halts: bool = False  # gdbext stops itself in the middle of a stop

    def __str__(self):
        ranks = " ".join("+".join(rank) or "quiet" for rank in self.ranks)
        words = [f"{self.command} of {len(self.ranks)} ({ranks}) by {self.select}, {self.gdb} gdb"]
        words += [self.keep] if self.keep else []
        words += [f"place {self.place}"] if self.place else []
        words += [f"{name} {value}" for name, value in self.limits]
        words += [f"beside {self.second}"] if self.second else []
        words += [f"clock {self.clock}"] if self.clock else []
        words += ["stops itself"] if self.halts else []
        return "; ".join(words + [" ".join(map(str, self.shots))] * bool(self.shots))

    @property
    def faults(self):
        """The kinds of faults, for the summary."""
        found = [f"{shot.what} to {'a rank' if shot.who.startswith('rank') else shot.who}" for shot in self.shots]
        found += [f"rank that has {behaviour}" for rank in self.ranks for behaviour in rank if behaviour != "python"]
        found += [f"place {self.place}"] if self.place else []
        found += [f"limit {name}" for name, _ in self.limits]
        found += ["a second gdbext"] if self.second else []
        found += [f"clock {self.clock}"] if self.clock else []
        found += ["STOP in the middle of a stop"] if self.halts else []
        return sorted(set(found))


def draw(seed, number, may_mount=True):
    """The plan of a round. `may_mount`: we are root; else what needs mounts is left out."""
    dice = random.Random(f"gdbext chaos {seed} {number}")
    command = dice.choice(COMMANDS)
    count = dice.choice((1, 2, 2, 3, 3, 4))
    ranks = tuple(_rank(dice) for _ in range(count))
    faults = dice.sample(("us", "us", "rank", "place", "limit", "second", "clock"), dice.choice((1, 1, 2, 2, 3)))
    shots = []
    if "us" in faults:
        shots += _shots_at_us(dice, command)
    if "rank" in faults:
        shots += _shots_at_ranks(dice, count)
    place = dice.choice(PLACES) if "place" in faults else None
    clock = dice.choice(("jumps", "other-namespace")) if "clock" in faults else None
    if not may_mount:
        place, clock = (place if place in ("no-home",) else None), ("jumps" if clock else None)
    if command == "attached":
        clock = None if clock == "jumps" else clock
    keeps = (None, None, "save", "bundle") if command in ("diagnose", "together") else (None,)
    seconds = ("diagnose", "stacks", "comms", "attached", "ranks") if "second" in faults else (None,)
    return Plan(
        number,
        ranks,
        dice.choice((1, 3, 8, 20)),
        command,
        dice.choice(("pids", "pids", "pgid", "name")),
        dice.random() < 0.4,
        dice.choice(keeps),
        dice.random() < 0.7,
        dice.choice(("distribution", "distribution", "newest")),
        tuple(shots),
        place,
        _limits(dice) if "limit" in faults else (),
        dice.choice(seconds),
        clock,
    )


def draw_halting(seed, number):
    """The plan of a round in which gdbext is stopped while it holds ranks, and nothing else is wrong."""
    plan = draw(seed, number)
    dice = random.Random(f"gdbext chaos halting {seed} {number}")
    return replace(
        plan,
        command=dice.choice(("diagnose", "together", "together", "stacks", "locks")),
        keep=None,
        shots=(),
        place=None,
        limits=(),
        second=None,
        clock=None,
        halts=True,
    )


def _rank(dice):
    kind = dice.random()
    if kind < 0.1:
        return ("python",)
    if kind < 0.4:
        return ()
    return tuple(sorted(dice.sample(BEHAVIOURS, dice.choice((1, 1, 2, 3)))))


def _shots_at_us(dice, command):
    shots = []
    for _ in range(dice.choice((1, 1, 1, 2))):
        what = dice.choice(SIGNALS)
        if command == "attached":
            # its gdb holds the ranks: hit while it attaches, walks and lets go
            shots.append(Shot(dice.uniform(0, 1.6), "start", "gdb", what))
        elif dice.random() < 0.5 and command not in ("comms", "ranks"):
            shots.append(Shot(dice.uniform(0, 0.5), "gdb", "gdb", what))
        else:
            who = "front" if dice.random() < 0.7 else "group"
            shots.append(Shot(dice.uniform(0, 2.0) * dice.choice((0.3, 1)), "start", who, what))
    return shots


def _shots_at_ranks(dice, count):
    shots = []
    for _ in range(dice.choice((1, 1, 2))):
        rank = f"rank {dice.randrange(count)}"
        at, mark = dice.uniform(0, 1.2), dice.choice(("start", "start", "gdb"))
        kind = dice.choice(("KILL", "STOP", "STOP CONT", "CONT"))
        for what in kind.split():
            shots.append(Shot(at, mark, rank, what))
            at += dice.uniform(0.01, 0.5)
    return shots


def _limits(dice):
    name = dice.choice(("AS", "AS", "NOFILE", "NOFILE", "FSIZE", "STACK"))
    value = {
        "AS": lambda: dice.choice((32, 64, 96, 128, 192, 256, 384, 512)) * MIB,
        "NOFILE": lambda: dice.choice((6, 7, 8, 10, 12, 16, 24, 32)),
        "FSIZE": lambda: dice.choice((0, 4096, 65536, MIB)),
        "STACK": lambda: dice.choice((128 << 10, 512 << 10)),
    }[name]()
    return ((name, value),)
