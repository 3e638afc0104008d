"""What `--hosts` costs the caller: made snapshots of many hosts, sent by the real exec worker (`cat FILE`), and judged.

A host has 8 ranks of 200 threads; one rank of the job is in cudaMallocHost, the others wait for the GPU. The calls of a
process have addresses of their own. CPU seconds and memory are those of `gdbext diagnose --hosts` and its children; the
hosts themselves do nothing. `sent` is what one host sends, compressed.
"""

import argparse
import base64
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tabulate import tabulate

from gdbext.collect.hosts.on_host import MARK
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.snapshot_files.codec import dump_snapshot
from tests.bench import scale_child
from tests.bench.accuracy import machine
from tests.inferiors.capture_process import CaptureProcess
from tests.ssh_hosts import Hosts

ROOT = Path(__file__).resolve().parents[2]
GDBEXT = (sys.executable, "-m", "gdbext")
_CHUNK = 48 << 10


def threads_of(count, stuck, pid):
    """The threads of one rank: those of a pool are in the same calls, at the same places of this process."""
    base = 0x7F0000000000 + (pid % 4096 << 24)
    calls = [scale_child._STUCK if stuck else scale_child._WAITING, *scale_child._HELPERS]
    kinds = [scale_child.thread(one, pid) for one in calls]
    kinds = [
        replace(one, frames=tuple(replace(frame, pc=base + 4096 * kind + at) for at, frame in enumerate(one.frames)))
        for kind, one in enumerate(kinds)
    ]
    first = replace(kinds[0], name="engine")
    rest = (
        replace(kinds[1 + number % (len(kinds) - 1)], id=str(pid + number), lwp=pid + number)
        for number in range(1, count)
    )
    return (first, *rest)


def look_of(host, hosts, ranks, threads):
    """The snapshot of one host, as it would send it."""
    world, late = hosts * ranks, hosts * ranks // 2
    processes = []
    for local in range(ranks):
        rank, pid = host * ranks + local, 1000 + 1000 * local
        stacks = threads_of(threads, rank == late, pid)
        processes.append(RankSnapshot(local, stacks, pid, rank, local, world, host=f"n{host}"))
    return zlib.compress(dump_snapshot(JobSnapshot(tuple(processes), world_size=world, taken_at=1e9)).encode(), 6)


def said(packed):
    """All that `on_host` would say, in one go."""
    rows = [["hello", {"time": 0.0, "gdb": "/usr/bin/gdb"}], *[["clock", {"time": 0.0}]] * 3, ["ready", {}]]
    pieces = (packed[start : start + _CHUNK] for start in range(0, len(packed), _CHUNK))
    rows += [["data", {"text": base64.b64encode(piece).decode()}] for piece in pieces]
    rows.append(["end", {"sha256": hashlib.sha256(packed).hexdigest()}])
    return "".join(MARK + json.dumps(row) + "\n" for row in rows)


def measure(folder, hosts, ranks, threads):
    """(bytes that a host sends, CPU seconds, MiB, the verdict)."""
    size = 0
    for host in range(hosts):
        packed = look_of(host, hosts, ranks, threads)
        size = max(size, len(packed))
        (folder / f"n{host}").write_text(said(packed))
    argv = [*GDBEXT, "diagnose", "--hosts", f"n[0-{hosts - 1}]", "--max-hosts", str(hosts)]
    argv += ["--via", f"cat {folder}/%h #", "-q", "--json"]
    with open(folder / "answer", "w+") as out:
        child = subprocess.Popen(argv, stdout=out, cwd=ROOT)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        answer = json.load(out)
    assert child.returncode == 1 and all(one["read"] for one in answer["hosts"]), (child.returncode, answer["hosts"][0])
    verdict = answer["verdict"]
    assert verdict["culprits"] == [hosts * ranks // 2], verdict
    return size, used.ru_utime + used.ru_stime, used.ru_maxrss >> 10, verdict["cause"]


def replayed(folder, hosts, ranks, threads, slowest):
    """Seconds of a look whose hosts answer after made times, the last after `slowest`, and of one without waiting."""
    dice = random.Random(7)
    times = [*(round(dice.uniform(0.5, 1.0) * slowest, 2) for _ in range(hosts - 1)), slowest]
    for host, seconds in enumerate(times):
        (folder / f"n{host}").write_text(said(look_of(host, hosts, ranks, threads)))
        (folder / f"t{host}").write_text(str(seconds))
    found = []
    for wait in (f"sleep $(cat {folder}/t$h);", ""):
        via = f"sh -c 'h=%h; h=${{h#n}}; {wait} cat {folder}/n$h' #"
        argv = [*GDBEXT, "diagnose", "--hosts", f"n[0-{hosts - 1}]", "--via", via, "-q", "--json"]
        began = time.monotonic()
        done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE)
        found.append(time.monotonic() - began)
        assert done.returncode == 1, done.returncode
    return found


def cost(*commands):
    """CPU seconds of commands that run at the same time, and of all that they wait for; Python may keep what it has
    compiled, as anywhere."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    found = 0.0
    for child in [subprocess.Popen(argv, cwd=ROOT, env=environ, **quiet) for argv in commands]:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode in (0, 1, 3), (child.returncode, child.args)
        found += used.ru_utime + used.ru_stime
    return found


def served(hosts):
    """CPU seconds that logins on the hosts have taken: sshd is the first process there, and waits for all of them."""
    found = 0
    for name in hosts.names:
        _, _, fields = Path(f"/proc/{hosts.first(name)}/stat").read_text().rpartition(")")
        found += sum(int(one) for one in fields.split()[11:15])  # utime stime cutime cstime (proc(5))
    return found / os.sysconf("SC_CLK_TCK")


def beside(folder, count, ranks, threads, rounds):
    """CPU seconds of looks taken on the hosts one by one, all at the same time, and by `--hosts` with ssh on the caller
    and on the hosts, for each round; and what one host sends, packed. The hosts share our processors: what runs at the
    same time takes longer for that alone, which on hosts with processors of their own it does not."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # the same Python for both
    with ExitStack() as running:
        hosts = running.enter_context(Hosts(folder, count))
        for number, name in enumerate(hosts.names):
            for local in range(ranks):
                known = {"RANK": number * ranks + local, "WORLD_SIZE": count * ranks, "LOCAL_RANK": local}
                environ = {**os.environ, **{key: str(value) for key, value in known.items()}}
                running.enter_context(CaptureProcess(threads, mode="calm", wrapper=hosts.on(name), env=environ))
        which = ["--name", "capture_threads", "-q"]
        saved = [folder / f"look-{name}" for name in hosts.names]
        pairs = []
        words = [*GDBEXT, "diagnose", *which, "--force", "--save"]
        cost([*hosts.on("h1"), *words, str(saved[0])])  # Python keeps what it has compiled
        for _ in range(rounds):
            looks = [[*hosts.on(name), *words, str(file)] for name, file in zip(hosts.names, saved)]
            alone = sum(map(cost, looks))
            crowd = cost(*looks)
            before = served(hosts)
            called = cost([*hosts.caller, *GDBEXT, "diagnose", *which, "--hosts", f"h[1-{count}]"])
            pairs.append((alone, crowd, called, served(hosts) - before))
        sent = max(len(zlib.compress(file.read_bytes(), 6)) for file in saved)
    return pairs, sent


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench hosts", description=__doc__)
    parser.add_argument("--hosts", type=int, nargs="*", default=[32, 128, 512])
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--slowest", type=float, metavar="S", help="8 hosts that answer after a time each, at most S")
    parser.add_argument("--beside", type=int, metavar="HOSTS", help="so many real hosts, and looks one by one")
    parser.add_argument("--rounds", type=int, default=2, help="of --beside, a pair each")
    options = parser.parse_args()
    print(machine(), "\n")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        if options.slowest:
            late, alone = replayed(Path(name), 8, options.ranks, options.threads, options.slowest)
            print(f"slowest host {options.slowest:g} s: {late:.1f} s, without waiting {alone:.1f} s")
            return
        if options.beside:
            pairs, sent = beside(Path(name), options.beside, options.ranks, options.threads, options.rounds)
            print(f"{options.beside} hosts x {options.ranks} ranks x {options.threads} threads, seconds of CPU:")
            for alone, crowd, here, there in pairs:
                both = here + there
                print(
                    f"one by one {alone:.1f}, at the same time {crowd:.1f}, --hosts {both:.1f} ({here:.1f} here):",
                    end="",
                )
                print(f" ratio {both / alone:.2f} to one by one, {both / crowd:.2f} to the same time")
            print("load", *os.getloadavg())
            print(f"a host sends {sent / 1000:.1f} kB")
            return
    rows = []
    for hosts in options.hosts:
        with tempfile.TemporaryDirectory() as folder:
            size, cpu, memory, cause = measure(Path(folder), hosts, options.ranks, options.threads)
        threads = hosts * options.ranks * options.threads
        rows.append([hosts, f"{threads:,}", f"{size / 1000:.1f} kB", f"{cpu:.1f}", f"{memory} MiB", cause])
        print(*rows[-1], file=sys.stderr)
    heads = ["hosts", "threads", "sent", "CPU s", "memory", "verdict"]
    print(tabulate(rows, heads, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
