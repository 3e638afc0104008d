"""Rounds of hit and continue: a rank stops at a place, the others do what was asked, and all go on.

    scripts/break-rounds [--others run] [--rounds 200] [--gdb PATH] [--location PLACE]

A round may take DEADLINE seconds, however many there are. A round fails when the wrong rank stops, when another one is
not where the policy wants it, or when gdb does not come back; then everything printed is shown.
"""

import argparse
import re
import statistics
import sys
import time

from tests.conftest import gdbs
from tests.gdb.gdbrun import INIT, Terminal
from tests.inferiors.demo import DemoJob, state_of

PLACE = "fastertransformer::ParallelGpt<float>::synchronize"
PROMPT = re.escape(Terminal.PROMPT) + r"\Z"
FOCUS = 1
SAYS = {
    "hold": "ranks 0,2 wait at the same place",
    "stop": "the others are stopped with it",
    "run": "the others keep running, not attached, until llm-continue",
}


def attach(job):
    return "llm-attach-all " + " ".join(map(str, job.pids.values()))


def text_of(pid):
    """The engine's code as it stands in memory."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        line = next(line for line in maps if "r-xp" in line and line.rstrip().endswith("/engine"))
        start, end = (int(word, 16) for word in line.split()[0].split("-"))
        memory.seek(start)
        return memory.read(end - start)


def assert_free(job, before=None):
    """Nobody traces them, all of them work, and their code is their own."""
    for rank, pid in job.pids.items():
        assert state_of(pid)[1] == 0
        assert job.steps_progress(rank)
        assert before is None or text_of(pid) == before[rank]


def assert_others(job, policy):
    """Held and stopped ranks are gdb's; those that run on are nobody's, and alive."""
    for rank, pid in job.pids.items():
        letter, tracer = state_of(pid)
        if policy == "run" and rank != FOCUS:
            assert tracer == 0, f"rank {rank} is still traced"
            assert job.alive_progress(pid), f"rank {rank} is in state {letter}"
        else:
            assert tracer and letter == "t", f"rank {rank} is in state {letter}, traced by {tracer}"


def play(gdb, policy, rounds, location=PLACE, told=lambda number, seconds: None):
    """Plays them on a job of its own; returns how long each took. Raises AssertionError."""
    taken = []
    with DemoJob("healthy-busy", wait="poll") as job:
        before = {rank: text_of(pid) for rank, pid in job.pids.items()}
        with Terminal(gdb, f"source {INIT}", attach(job)) as terminal:
            terminal.expect(PROMPT)
            terminal.command(f"llm-break '{location}' --rank {FOCUS} --others {policy} --wait 30")
            if policy == "hold":
                terminal.in_step()
            for number in range(1, rounds + 1):
                begun = time.monotonic()
                said = terminal.command("llm-continue")
                assert f"rank {FOCUS} is at {location}; {SAYS[policy]}" in said, f"round {number}: {said}"
                assert "Traceback" not in said, f"round {number}: {said}"
                assert_others(job, policy)
                taken.append(time.monotonic() - begun)
                told(number, taken[-1])
            listed = terminal.command("llm-break list")
            assert f"passed rank {FOCUS}: {rounds + (policy == 'hold')}" in " ".join(listed.split()), listed
            terminal.confirmed("llm-break delete")
            said = terminal.command("llm-detach-all")
            assert_free(job, before)
    return taken


def main():
    parser = argparse.ArgumentParser(prog="scripts/break-rounds", description=__doc__.splitlines()[0])
    parser.add_argument("--others", nargs="+", choices=SAYS, default=[*SAYS], metavar="POLICY", help="; ".join(SAYS))
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--gdb", nargs="+", default=gdbs(), metavar="PATH")
    parser.add_argument("--location", default=PLACE)
    options = parser.parse_args()
    failed = 0
    for gdb in options.gdb:
        for policy in options.others:
            done = []
            try:
                play(gdb, policy, options.rounds, options.location, lambda *round_: done.append(round_))
                outcome = f"no rank was left behind; median {statistics.median(s for _, s in done):.2f} s a round"
            except AssertionError as error:
                failed += 1
                outcome = f"FAILED: {error}"
            slowest = max((seconds for _, seconds in done), default=0.0)
            print(f"{gdb} --others {policy}: {len(done)} rounds, {outcome}, longest {slowest:.2f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
