"""Random rounds of `--hosts` by ssh on three hosts (tests/ssh_hosts.py): what fails on one, and what became of all.

A round fails when a rank of a host that lives is traced, stopped or stands still, when a process or a file stays there
or here, when a host without a fault was not read, when one with a fault is not named with its reason, or when there is
neither an answer nor one clear line. The plan of a round follows from --seed and its number alone; moments are shares
of the time that a look without faults took.
"""

import argparse
import base64
import collections
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from gdbext.collect.hosts.on_host import MARK as LINE
from tests import ssh_hosts
from tests.chaos.command import MARK, ROOT, marked
from tests.chaos.job import state_of, states_of, tracers, waits
from tests.gdb.gdbrun import build
from tests.polling import lasts

COUNT = 3
AT_HOSTS = ("dies", "cut", "cut-in-snapshot", "zeros", "hostile", "full", "clock", "refuses")
AT_CALLER = ("caller KILL", "caller INT", "caller TERM", "second caller")
LOGIN = "ssh -T -o BatchMode=yes -o ConnectTimeout=10"
STUCK = 240.0  # seconds after which a caller hangs: more than one look may take
GONE = 90.0  # seconds until nothing may be left, on a busy machine


@dataclass(frozen=True)
class Plan:
    """One round. `faults`: (host, what, share of a look's time); `caller`: (what, share)."""

    number: int
    faults: tuple
    caller: tuple = ()
    once: bool = False
    command: str = "diagnose"

    def __str__(self):
        words = [self.command + (" --once" if self.once else "")]
        words += [f"{host} {what}@{share:.2f}" for host, what, share in self.faults]
        words += ["{}@{:.2f}".format(*self.caller)] if self.caller else []
        return "; ".join(words)

    @property
    def kinds(self):
        return sorted({what for _, what, _ in self.faults} | set(self.caller[:1]))


def draw(seed, number):
    """The plan of a round."""
    dice = random.Random(f"gdbext chaos hosts {seed} {number}")
    names = dice.sample([f"h{host}" for host in range(1, COUNT + 1)], dice.choice((0, 1, 1, 1, 2)))
    faults = tuple((name, dice.choice(AT_HOSTS), dice.random()) for name in names)
    caller = (dice.choice(AT_CALLER), dice.random()) if not faults or dice.random() < 0.25 else ()
    return Plan(number, faults, caller, dice.random() < 0.5, dice.choice(("diagnose", "diagnose", "stacks", "comms")))


@dataclass
class Outcome:
    plan: object
    problems: list = field(default_factory=list)
    code: object = None
    seconds: float = 0.0
    text: str = ""


class Ground:
    """The hosts with their ranks."""

    def __init__(self, folder):
        self.folder = folder
        self.hosts = ssh_hosts.Hosts(folder, COUNT)
        self.ahead = build("clock_ahead.c", "-shared", "-fPIC")
        self.program = build("chaos_rank.c", "-g", "-O1")
        self.usual = 10.0  # seconds of a look without faults
        self.ranks = {}
        for name in self.hosts.names:
            self.begin(name)

    def begin(self, name):
        """Its rank begins; `state` counts its heartbeats."""
        state = self.folder / f"state-{name}"
        state.write_bytes(bytes(4096))
        words = [*self.hosts.on(name), self.program, str(state), "0", "3", "chaos-hosts"]
        number = str(self.hosts.names.index(name))
        environment = {**os.environ, "RANK": number, "WORLD_SIZE": str(COUNT), "LOCAL_RANK": "0"}
        self.ranks[name] = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL)
        if not waits(lambda: self.beats(name), 60.0):
            raise RuntimeError(f"the rank of {name} does not start")

    def beats(self, name):
        return int.from_bytes((self.folder / f"state-{name}").read_bytes()[:8], "little")

    def pid(self, name):
        """Of the rank, seen from here: nsenter waits for it."""
        nsenter = self.ranks[name].pid
        return int(Path(f"/proc/{nsenter}/task/{nsenter}/children").read_text().split()[0])

    def revive(self, name):
        self.ranks[name].wait()
        self.hosts.start([name])
        self.begin(name)

    def strangers(self, name):
        """Processes of a host that are neither its sshd nor its rank."""
        found = []
        for path in self.hosts.tmp(name).parent.glob("proc/[0-9]*/cmdline"):
            try:
                words = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
            except OSError:
                continue
            if words and "chaos-hosts" not in words and "sshd" not in words:
                found.append(words[:100])
        return found

    def files(self, name):
        return [path.name for path in self.hosts.tmp(name).iterdir() if path.name != "filler"]


def hostile(dice):
    """What a host that lies may send: lines of ours with something else in them."""
    kind = dice.choice(("bomb", "deep", "digest", "types", "noise", "escapes", "half"))
    texts = {
        "bomb": b"0" * (600 << 20) if kind == "bomb" else b"",
        "deep": b"[" * 1_000_000,
        "types": b'{"format": "gdbext snapshot", "processes": [[7, {}, null, -1e999]], "schema": {}}',
        "noise": dice.randbytes(100_000),
        "escapes": b'{"\\u001b]0;owned\\u0007": "$(reboot)`reboot`"}',
    }
    packed = zlib.compress(texts.get(kind, b"{}"), 6)
    digest = "0" * 64 if kind == "digest" else hashlib.sha256(packed).hexdigest()
    rows = [["hello", {"time": 0.0, "gdb": "/bin/sh -c reboot"}], *[["clock", {"time": -1e300}]] * 3, ["ready", {}]]
    rows += [["data", {"text": base64.b64encode(packed[start : start + 48000]).decode()}]
             for start in range(0, len(packed), 48000)]  # fmt: skip
    rows = rows[: len(rows) // 2 + 1] if kind == "half" else [*rows, ["end", {"sha256": digest}]]
    return "".join(LINE + json.dumps(row) + "\n" for row in rows).encode()


def ways(ground, plan, seed):
    """A script for each host: the words that follow lead to a shell there."""
    faults = {host: (what, share) for host, what, share in plan.faults}
    dice = random.Random(f"gdbext chaos hosts ways {seed} {plan.number}")
    for name in ground.hosts.names:
        what, share = faults.get(name, ("", 0.0))
        login = f'{LOGIN} {name} "$@"'
        lines = {
            "cut-in-snapshot": f"{login} | head -c {2000 + int(share * 12000)}",
            "zeros": "exec head -c 1000000000 /dev/zero",
            "hostile": f"cat {ground.folder}/hostile-{name}",
            "clock": f"exec {LOGIN} {name} env LD_PRELOAD={shlex.quote(ground.ahead)} sh",
            "refuses": "echo 'Permission denied (publickey).' >&2; exit 255",
        }
        if what == "hostile":
            (ground.folder / f"hostile-{name}").write_bytes(hostile(dice))
        way = ground.folder / f"way-{name}"
        way.write_text(f"#!/bin/sh\n{lines.get(what, 'exec ' + login)}\n")
        way.chmod(0o755)
        if what == "full":
            tmp = ground.hosts.tmp(name)
            room = shutil.disk_usage(tmp).free
            left = dice.choice((0, 4096, 300_000, 1_500_000, 4_000_000))
            (tmp / "filler").write_bytes(bytes(max(0, room - left)))


class Caller:
    """One gdbext of a round."""

    def __init__(self, ground, plan, mark, number=0):
        self.tmp = ground.folder / f"tmp-{number}"
        shutil.rmtree(self.tmp, ignore_errors=True)
        self.tmp.mkdir()
        self.out, self.err = ground.folder / f"out-{number}", ground.folder / f"err-{number}"
        argv = [
            *ground.hosts.caller,
            sys.executable,
            "-m",
            "gdbext",
            plan.command,
            "--hosts",
            f"h[1-{COUNT}]",
            "--json",
        ]
        argv += ["--via", f"{ground.folder}/way-%h", "-q", "--name", "chaos-hosts"]
        argv += ["--once"] * (plan.once and plan.command != "comms")
        environment = {**os.environ, MARK: mark, "TMPDIR": str(self.tmp), "PYTHONPATH": str(ROOT)}
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                argv, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
            )
        self.killed = None

    def hit(self, name):
        if self.process.poll() is None:
            self.killed = getattr(signal, f"SIG{name}")
            self.process.send_signal(self.killed)

    def end(self):
        try:
            self.process.wait(STUCK)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return [f"the caller did not end within {STUCK:g} s"]
        return []


def play(ground, plan, seed):
    """Play one round."""
    outcome, began = Outcome(plan), time.monotonic()
    mark = f"{os.getpid()}-{plan.number}"
    ways(ground, plan, seed)
    callers = [Caller(ground, plan, mark)]
    dead = strike(ground, plan, callers, mark)
    for caller in callers:
        outcome.problems += caller.end()
    for name in ground.hosts.names:  # room again, for whoever cleans up
        if name not in dead:
            (ground.hosts.tmp(name) / "filler").unlink(missing_ok=True)
    outcome.code = callers[0].process.returncode
    outcome.seconds = time.monotonic() - began
    for caller in callers:
        outcome.problems += said_wrong(plan, caller)
        outcome.text += caller.out.read_text(errors="replace")[-6000:] + "\n--- stderr\n" + caller.err.read_text()
    outcome.problems += left(ground, callers, dead, mark)
    for name in dead:
        ground.revive(name)
    if not plan.kinds:
        ground.usual = outcome.seconds
    return outcome


def strike(ground, plan, callers, mark):
    """Let the faults happen, each at its time; the hosts that died."""
    began, dead = time.monotonic(), []
    shots = [(share, what, host) for host, what, share in plan.faults if what in ("dies", "cut")]
    shots += [(plan.caller[1], plan.caller[0], None)] if plan.caller else []
    for share, what, host in sorted(shots):
        lasts(max(0.0, began + share * ground.usual - time.monotonic()))
        if what == "dies":
            ground.hosts.kill(host)
            dead.append(host)
        elif what == "cut":
            for pid in marked(mark):
                words = Path(f"/proc/{pid}/cmdline")
                if words.exists() and f"\0{host}\0".encode() in words.read_bytes():
                    os.kill(pid, signal.SIGKILL)
        elif what == "second caller":
            callers.append(Caller(ground, plan, mark, 1))
        else:
            callers[0].hit(what.split()[1])
    return dead


def said_wrong(plan, caller):
    """What is wrong with the answer."""
    out, err, code = caller.out.read_text(errors="replace"), caller.err.read_text(errors="replace"), None
    code = caller.process.returncode
    found = ["there is a traceback"] if "Traceback" in err + out else []
    if re.search(r"[\x00-\x08\x0b-\x1f]", out + err):
        found.append("a control character came through")
    if caller.killed is not None:
        return found
    if code not in (0, 1, 3, 4):
        found.append(f"status {code}: {err[-300:]}")
    try:
        answer = json.loads(out)
    except ValueError:
        return [*found, f"no document on stdout: {out[:200]}"]
    if plan.command != "diagnose" or "hosts" not in answer:
        return found
    faulty = {host for host, _, _ in plan.faults}
    for one in answer["hosts"]:
        if not one["read"] and one["name"] not in faulty:
            found.append(f"{one['name']} had no fault and was not read: {one['reason']}")
        if not one["read"] and not one["reason"]:
            found.append(f"{one['name']} was not read, and nothing says why")
        if one["read"] and (one["name"], "zeros") in {(host, what) for host, what, _ in plan.faults}:
            found.append(f"{one['name']} sent zeros and was believed")
        clock = any(what == "clock" and host == one["name"] for host, what, _ in plan.faults)
        if clock and one["read"] and abs(one["offset"] - 3600) > 5:
            found.append(f"the clock of {one['name']} is off by {one['offset']}, not 3600")
    return found


def left(ground, callers, dead, mark):
    """Ranks that are not as they were, processes and files that are still there after a moment."""
    found = []
    for name in ground.hosts.names:
        if name in dead:
            continue
        if not waits(lambda name=name: not ground.strangers(name), GONE):
            found.append(f"left on {name}: {ground.strangers(name)[:3]}")
        if not waits(lambda name=name: not ground.files(name), 20.0):
            found.append(f"files on {name}: {ground.files(name)[:3]}")
        pid = ground.pid(name)
        if not waits(lambda pid=pid: not tracers(pid), 60.0):
            found.append(f"the rank of {name} is still traced")
        if any(state in "Tt" for state in states_of(pid)):
            found.append(f"the rank of {name} is stopped ({state_of(pid)})")
        before = ground.beats(name)
        if not waits(lambda name=name, before=before: ground.beats(name) > before + 1, 60.0):
            found.append(f"the rank of {name} does not go on")
    if not waits(lambda: not marked(mark), GONE):
        for pid in marked(mark):
            found.append(f"left here: {Path(f'/proc/{pid}/cmdline').read_bytes()[:100]!r}")
            os.kill(pid, signal.SIGKILL)
    for caller in callers:
        if list(caller.tmp.iterdir()):
            found.append(f"files here: {[path.name for path in caller.tmp.iterdir()][:3]}")
    return found


def summary(outcomes):
    failed = [outcome for outcome in outcomes if outcome.problems]
    lines = [f"{len(outcomes)} rounds, {COUNT} hosts, {len(failed)} rounds failed"]
    for title, count in (
        ("faults", collections.Counter(kind for outcome in outcomes for kind in outcome.plan.kinds)),
        ("exits", collections.Counter(outcome.code for outcome in outcomes)),
    ):
        lines.append(f"{title}: " + ", ".join(f"{name} {number}" for name, number in sorted(count.items(), key=str)))
    return lines + [f"  round {one.plan.number}: {'; '.join(one.problems)}" for one in failed]


def main():
    parser = argparse.ArgumentParser(prog="scripts/chaos --hosts", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--first", type=int, default=1, metavar="N", help="number of the first round")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="just these rounds, with what was printed")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no round after so many seconds")
    options = parser.parse_args()
    if ssh_hosts.MISSING:
        sys.exit(f"cannot be played: {ssh_hosts.MISSING}")
    numbers = options.only or range(options.first, options.first + options.rounds)
    began, outcomes = time.monotonic(), []
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp", prefix="hosts-")))
        ground = Ground(folder)
        running.enter_context(ground.hosts)
        play(ground, Plan(0, ()), 0)  # how long a look takes here
        for number in numbers:
            if time.monotonic() - began > options.seconds:
                break
            outcome = play(ground, draw(options.seed, number), options.seed)
            outcomes.append(outcome)
            state = "ok" if not outcome.problems else "FAILED: " + "; ".join(outcome.problems)
            print(
                f"{number:4} {outcome.seconds:5.1f} s  exit {outcome.code!s:4}  {outcome.plan}\n       {state}",
                flush=True,
            )
            if options.only or outcome.problems:
                print(outcome.text[-6000:], flush=True)
    for one in ground.ranks.values():
        one.wait()
    print("\n".join(["", f"seed {options.seed}, {time.monotonic() - began:.0f} s", *summary(outcomes)]))
    return 1 if any(outcome.problems for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
