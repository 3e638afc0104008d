"""One gdbext under test: its arguments, its life, and whether what it said is an answer or one clear line."""

import contextlib
import functools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.chaos.job import state_of
from tests.chaos.places import prepare_child

ROOT = Path(__file__).parents[2]
GDBS = {
    "distribution": shutil.which("gdb", path="/usr/local/bin:/usr/bin:/bin") or "gdb",
    "newest": str(Path(sys.executable).parent / "gdb"),
}
HALT_LIMIT = 0.3  # seconds of --max-pause where gdbext stops itself
MARK = "GDBEXT_CHAOS"  # in the environment of all that a round starts but its ranks
_NOT_FOR_USERS = re.compile(
    r"Traceback \(most recent call last\)|Python Exception|internal-error|Exception ignored|Segmentation fault"
    r"|A problem internal to GDB|Fatal signal"
)

_BEFORE_US = re.compile(
    r"Fatal Python error: init|\nKeyboardInterrupt\n|Could not load the Python gdb module|Python not initialized"
)
# A Ctrl-C in a callback of the import system: Python itself prints it and forgets it.
_INSIDE_PYTHON = re.compile(r"Exception ignored in: <function _get_module_lock.*?\nKeyboardInterrupt:? *\n", re.DOTALL)
_OUR_FILE = re.compile(re.escape(str(ROOT / "gdbext")) + r"/(\S+?\.py)")
_GDB_ITSELF = re.compile(
    r"A problem internal to GDB|Fatal signal: |virtual memory exhausted|Python not initialized"
)  # no gdb lives with less


def arguments_of(plan, command, job, out):
    """The words of a command line on the ranks of the job."""
    chosen = {
        "pids": list(map(str, job.pids)),
        "pgid": ["--pgid", str(job.pids[0])],
        "name": ["--name", f"{job.title}$"],
    }[plan.select]
    gdb = GDBS[plan.gdb]
    if command == "attached":
        words = [gdb, "-nx", "-nh", "-q", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off"]
        lines = [f"source {ROOT}/gdbext/init.py", f"llm-attach-all {' '.join(chosen)}"]
        lines += ["llm-nccl-diagnose", "llm-locks", "llm-detach-all"]
        return words + [word for line in lines for word in ("-ex", line)]
    odd = "tests.chaos.jumping" if plan.clock == "jumps" else "tests.chaos.halting" if plan.halts else None
    words = [sys.executable, "-m", odd, str(plan.number)] if odd else [sys.executable, "-m", "gdbext"]
    words.append("diagnose" if command == "together" else command)
    words += chosen
    words += ["--json"] if plan.json else []
    if command in ("diagnose", "together", "stacks", "locks"):
        words += ["--gdb", gdb] + ["--once"] * plan.once
        words += ["--max-pause", str(HALT_LIMIT)] if plan.halts else []
    words += ["--together"] if command == "together" else []
    if plan.keep and command == plan.command:
        words += [f"--{plan.keep}", str(out / "kept")]
    if command == "watch":
        words += ["--gdb", gdb, "--still", "0.4", "--every", "0.2", "--into", str(out / "watch")]
    return words


class Command:
    """It runs; `pid` is the front end (or the gdb that holds the ranks)."""

    def __init__(self, plan, command, job, place, mark):
        self.plan, self.command = plan, command
        self.sent = []  # signals, and to whom
        environment = {**os.environ, **place.environment, MARK: mark, "PYTHONPATH": str(ROOT)}
        environment.pop("GDBEXT_GDB", None)
        self._process = subprocess.Popen(
            arguments_of(plan, command, job, place.out),
            cwd=place.cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=functools.partial(_become, plan, command),
        )  # fmt: skip
        self.pid = self._process.pid
        self._read = {}
        self._readers = [
            threading.Thread(target=self._drain, args=(name, stream), daemon=True)
            for name, stream in (("out", self._process.stdout), ("err", self._process.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def _drain(self, name, stream):
        self._read[name] = stream.read().decode(errors="replace")

    def gdb(self):
        """The pid of its gdb, None while there is none."""
        if self.command == "attached":
            return self.pid
        return next((pid for pid in _children(self.pid) if _name(pid).startswith("gdb")), None)

    def hit(self, who, what):
        """Send a signal; False when there is nobody (any more)."""
        number = getattr(signal, f"SIG{what}")
        pid = self.gdb() if who == "gdb" else self.pid
        if pid is None or self._process.poll() is not None:
            return False
        self.sent.append((who, what))
        try:
            if who == "group":
                os.killpg(self.pid, number)
            else:
                os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    @property
    def running(self):
        return self._process.poll() is None

    def end(self, patience):
        """Wait for its end; False when it had to be killed: it used no processor for that long. On a busy machine an
        honest end may take minutes."""
        began = since = time.monotonic()
        used, timely = -1, True
        while timely and self.running:
            now = sum(map(ticks, _tree(self.pid)))
            if now != used:
                used, since = now, time.monotonic()
            timely = time.monotonic() - since < patience and time.monotonic() - began < 10 * patience
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.2)
        if not timely:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(30)
        return timely

    @property
    def code(self):
        return self._process.returncode

    @property
    def out(self):
        return self._read.get("out", "")

    @property
    def err(self):
        return self._read.get("err", "")

    def faults(self):
        """What is wrong with the way it ended and what it printed."""
        text = _INSIDE_PYTHON.sub("", self.out + self.err)
        found = []
        ours = {name for name in _OUR_FILE.findall(text) if name != "init.py"}  # whose first lines are imports
        if _BEFORE_US.search(text) and not ours:
            return found  # Python itself was hit, before it came to any line of ours
        if self.command == "attached" and self.plan.limits and _GDB_ITSELF.search(text):
            return found
        bad = _NOT_FOR_USERS.search(text)
        if bad:
            found.append(f"{self.command} printed: {' / '.join(text[bad.start() :].splitlines()[:3])}")
        if self.command == "attached":
            return found
        hit = {what for who, what in self.sent if who in ("front", "group")}
        if self.plan.halts and self.code == -signal.SIGKILL:
            told = self.err.count("while it held pid")
            return found if told == 1 else [*found, f"{self.command} was ended and {told} lines say why"]
        if self.code in {-int(getattr(signal, f"SIG{what}")) for what in hit}:
            return found
        if self.code in {128 + int(getattr(signal, f"SIG{what}")) for what in hit} | ({0, 1} if hit else set()):
            return found
        if self.code not in (0, 1, 2, 3, 4):
            found.append(f"{self.command} ended with {self.code}")
        elif self.code in (0, 1, 3):
            found += self._faults_of_answer()
        elif not any(line.startswith("gdbext: ") for line in self.err.splitlines()):
            found.append(f"{self.command} ended with {self.code} and no line that says why")
        return found

    def _faults_of_answer(self):
        if not self.out.strip():
            return [f"{self.command} ended with {self.code} and no answer"]
        if self.plan.json:
            try:
                documents = (
                    [json.loads(line) for line in self.out.splitlines()]
                    if self.command == "watch"
                    else [json.loads(self.out)]
                )
            except ValueError:
                return [f"{self.command} printed no whole document"]
            if any(document.get("schema") != 1 for document in documents):
                return [f"{self.command} printed a document without its schema"]
        return []


def _become(plan, command):
    os.setpgid(0, 0)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # a campaign in the background of a shell ignores them
    if command == "attached":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a user's own gdb; ours leaves no core file by itself
    prepare_child(plan, ROOT)


def _children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _tree(pid):
    return [pid, *(below for child in _children(pid) for below in _tree(child))]


def ticks(pid):
    """Processor time of a process, its ended children's too."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            return sum(map(int, file.read().rpartition(")")[2].split()[11:15]))
    except OSError:
        return 0


def _name(pid):
    try:
        with open(f"/proc/{pid}/comm", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def marked(mark):
    """Processes that a round started and that are still there."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0") and state_of(name) != "Z":
                    found.append(int(name))
        except OSError:
            continue
    return found
