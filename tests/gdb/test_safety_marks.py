"""No marks: what a process is before a look and after it, bit for bit, and what gdb and the folders are."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gdbext.model.snapshot_files.codec import load_snapshot
from tests.conftest import gdbs
from tests.gdb.gdbrun import ROOT, Target, gdb_batch
from tests.polling import wait_until

pytestmark = pytest.mark.gdb

NOT_MEMORY = ("[vvar]", "[vvar_vclock]", "[vsyscall]")  # the kernel's clock pages
NO_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}  # else the kernel writes the number of the CPU into each thread
PYTHON = """
import sys, threading
for _ in range(3):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
"""


class QuietPython:
    """A Python process whose threads all wait."""

    def __enter__(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(
            [sys.executable, "-c", PYTHON], env={**os.environ, **NO_RSEQ, "RANK": "1"}, **pipes
        )
        self.pid = self._process.pid
        assert self._process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *details):
        self._process.kill()
        self._process.communicate()


def waits_for_ever(task):
    """In read, pause, or a futex without a time-out: Python's lock on itself, on the way there, has one."""
    number, *arguments = (Path(task, "syscall").read_text() + " 0 0 0 0").split()
    return number in ("0", "34") or (number == "202" and arguments[3] == "0x0")


@pytest.fixture(scope="module")
def job():
    """Two ranks in which nothing happens: one of C with threads, one of Python."""
    with Target("threads", 3, env={**NO_RSEQ, "RANK": "0", "WORLD_SIZE": "2"}) as one, QuietPython() as two:
        pids = (one.pid, two.pid)
        tasks = [f"/proc/{pid}/task/{tid}" for pid in pids for tid in os.listdir(f"/proc/{pid}/task")]
        wait_until(lambda: all(waits_for_ever(task) for task in tasks))
        yield pids


def status(path, names):
    lines = Path(path, "status").read_text().splitlines()
    return [line for line in lines if line.split(":")[0] in names]


def picture(pid):
    """All that a debugger could have changed in a process."""
    folder = f"/proc/{pid}"
    maps = Path(folder, "maps").read_text()
    found = {"maps": maps, "limits": Path(folder, "limits").read_text()}
    with open(f"{folder}/mem", "rb", buffering=0) as memory:
        for line in maps.splitlines():
            area, permissions = line.split()[:2]
            if "r" in permissions and not line.endswith(NOT_MEMORY):
                start, end = (int(word, 16) for word in area.split("-"))
                memory.seek(start)
                found[line] = hashlib.sha256(memory.read(end - start)).hexdigest()
    found["files"] = sorted((name, os.readlink(f"{folder}/fd/{name}")) for name in os.listdir(f"{folder}/fd"))
    names = (
        "Name",
        "State",
        "TracerPid",
        "SigPnd",
        "ShdPnd",
        "SigBlk",
        "SigIgn",
        "SigCgt",
        "Seccomp",
        "CapEff",
    )
    for tid in sorted(os.listdir(f"{folder}/task")):
        found[f"thread {tid}"] = status(f"{folder}/task/{tid}", names)
    return found


# What a program says to every gdb, and what the newest gdb sets when debuginfod is first asked about.
NOT_OURS = ("architecture:", "debuginfod urls:", "convenience", "history", "values", "commands")


def changes(before, after):
    """What differs, by process: texts that a person can read."""
    found = []
    for one, other in zip(before, after):
        names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
        found += [f"{name}: {one.get(name)} -> {other.get(name)}" for name in names]
    return found


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if "cache" not in path.parts)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Everything that a look could leave a file in. The cache may have files: that is what it is for."""
    for name in ("home", "cache", "tmp", "cwd"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path / "cwd")
    return tmp_path


@pytest.mark.parametrize("together", [[], ["--together"]])
def test_a_look_leaves_every_byte_of_a_quiet_process_as_it_was(together, job, home):
    before = [picture(pid) for pid in job]
    assert [picture(pid) for pid in job] == before, "the processes have to be quiet"
    argv = [sys.executable, "-m", "gdbext", "diagnose", *map(str, job), "--json", *together]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1), done.stderr
    assert {process["after"] for process in json.loads(done.stdout)["processes"]} == {"waits"}
    assert changes(before, [picture(pid) for pid in job]) == []
    assert files_below(home) == ["cwd", "home", "tmp"]


@pytest.mark.parametrize("gdb", gdbs(), ids=["distribution", "newest"])
def test_attach_diagnose_detach_leaves_no_mark(gdb, job, home):
    script = home / "settings.py"
    script.write_text(
        "import gdb\n"
        f"NOT_OURS = {NOT_OURS}\n"
        "def look():\n"
        "    lines = gdb.execute('show', to_string=True).splitlines()\n"
        "    named = (line for line in lines if not line.startswith(('$', 'http', 'DEBUGINFOD', *NOT_OURS)))\n"
        "    return list(named)\n"
        "before = look()\n"
    )
    before = [picture(pid) for pid in job]
    answer = gdb_batch(
        gdb,
        f"source {script}",
        f"llm-attach-all {job[0]} {job[1]} --json",
        "llm-nccl-diagnose --json",
        "llm-locks --json",
        "llm-detach-all --json",
        "python print('changed settings:', sorted(set(before) ^ set(look())))",
        "python print('inferiors:', [(one.num, one.pid) for one in gdb.inferiors()], len(gdb.breakpoints() or ()))",
    )
    assert [row["state"] for row in answer.documents[-1]["ranks"]] == ["released", "released"], answer.text
    assert len(answer.documents[1]["processes"]) == 2
    assert "changed settings: []" in answer.out
    assert re.search(r"inferiors: \[\(1, 0\)\] 0", answer.out)
    wait_until(lambda: {status(f"/proc/{pid}", ("TracerPid",))[0].split()[1] for pid in job} == {"0"})
    assert changes(before, [picture(pid) for pid in job]) == []
    (home / "settings.py").unlink()
    assert files_below(home) == ["cwd", "home", "tmp"]


def test_a_rank_that_somebody_stopped_during_the_look_is_noticed(home):
    """Not by us, but nobody else may ever see that it stands."""
    with Target("threads", 2) as one, Target("threads", 2) as two:
        argv = [sys.executable, "-m", "gdbext", "diagnose", str(one.pid), str(two.pid), "--no-witnesses"]
        argv += ["--save", str(home / "look.json")]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while "reading symbols" not in process.stderr.readline():
                assert process.poll() is None
            os.kill(two.pid, signal.SIGSTOP)
            out, err = process.communicate(timeout=600)
        assert two.status("State") == "T"
        os.kill(two.pid, signal.SIGCONT)
        told = {one.pid: one for one in load_snapshot((home / "look.json").read_text()).processes}
        assert told[two.pid].after == "stopped" and told[one.pid].after in ("waits", "runs")
        assert f"kill -CONT {two.pid}" in told[two.pid].problems[0]
        assert f"pid {two.pid}: it is stopped now" in err
        assert f"for each process; pid {two.pid} is stopped, 1 " in " ".join(out.split())
        one.assert_free()
        two.assert_free()
