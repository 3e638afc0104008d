"""Small processes to debug, and one gdb from outside: in batch, or on a terminal as a person has it."""

import hashlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from pathlib import Path

import gdbext
from tests.polling import DEADLINE, wait_until

ROOT = Path(gdbext.__file__).resolve().parent.parent
INIT = ROOT / "gdbext" / "init.py"
INFERIORS = ROOT / "tests" / "inferiors"
QUIET = (
    *("-nx", "-nh", "-q", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off"),
    *("-iex", "maintenance set internal-error corefile no"),  # of gdb itself, into the folder of the tests
)


def build(source, *flags):
    """Path of a program of tests/inferiors, compiled when its source is new."""
    source = INFERIORS / source
    mark = hashlib.sha256(source.read_bytes() + " ".join(flags).encode()).hexdigest()[:12]
    program = INFERIORS / "build" / f"{source.stem}-{mark}"
    if not program.exists():
        program.parent.mkdir(exist_ok=True)
        made = program.with_suffix(f".{os.getpid()}")
        compiler = "g++" if source.suffix == ".cpp" else "gcc"
        subprocess.run([compiler, "-Wall", "-pthread", *flags, "-o", made, source], check=True)
        os.replace(made, program)
    return str(program)


FUTEX = "202"  # the number of the system call on x86-64


class Target:
    """A running program of ours; ends with the `with` block."""

    def __init__(self, *arguments, source="debugger_target.c", flags=("-g", "-O0"), **options):
        self.program = build(source, *flags)
        self._meets = arguments[:1] == ("threads",)
        self._process = subprocess.Popen(
            [self.program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
        )
        self.pid = self._process.pid

    def __enter__(self):
        assert self._process.stdout.readline() == "ready\n"
        if self._meets:
            tasks = f"/proc/{self.pid}/task"
            wait_until(lambda: all(map(self._has_come, os.listdir(tasks))), "its threads come to rest")
        return self

    def _has_come(self, tid):
        """Threads that have met at the barrier go on to where they stay, one after the other."""
        path = Path(f"/proc/{self.pid}/task/{tid}/syscall")
        return int(tid) == self.pid or path.read_text().split()[0] not in (FUTEX, "running")

    def __exit__(self, *details):
        self.kill()
        self._process.stdin.close()
        self._process.stdout.close()

    def kill(self):
        self._process.kill()
        self._process.wait()

    def status(self, name):
        """A line of /proc/PID/status."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        return re.search(rf"^{name}:\s*(\S+)", text, re.MULTILINE)[1]

    def assert_free(self):
        """Nobody traces it, and it answers."""
        assert self.status("TracerPid") == "0"
        self._process.stdin.write("alive\n")
        self._process.stdin.flush()
        assert select.select([self._process.stdout], [], [], DEADLINE)[0], f"stopped: {self.status('State')}"
        assert self._process.stdout.readline() == "alive\n"


class Answer:
    """What a gdb in batch mode left."""

    def __init__(self, done):
        self.out, self.err = done.stdout, done.stderr

    @property
    def documents(self):
        """Every JSON document that was printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    @property
    def text(self):
        return self.out + self.err


def gdb_batch(gdb, *commands, source=INIT, **options):
    """Run one gdb with our commands and without anybody's settings; it never outlives the call."""
    words = [gdb, *QUIET, "-batch"]
    for command in ([f"source {source}"] if source else []) + list(commands):
        words += ["-ex", command]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    ) as process:
        try:
            out, err = process.communicate(timeout=DEADLINE)
        finally:
            process.kill()
    return Answer(subprocess.CompletedProcess(words, process.returncode, out, err))


class Terminal:
    """A gdb on a terminal of its own."""

    PROMPT = "(gdb) "

    def __init__(self, gdb, *arguments, echo=False):
        """With `echo` what is typed is shown, as readline does it for a person."""
        self._ours, theirs = pty.openpty()
        attributes = termios.tcgetattr(theirs)
        if not echo:
            attributes[3] &= ~termios.ECHO
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        words = [gdb, *QUIET, "-ex", "set style enabled off", "-ex", "set enable-bracketed-paste off"]
        words += [word for argument in arguments for word in ("-ex", argument)]
        environment = {**os.environ, "TERM": "dumb", "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(
            words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=environment,
            preexec_fn=_take_terminal,
        )  # fmt: skip
        os.close(theirs)
        self.pid = self.process.pid
        self._unread = ""  # what came in one go with the text that was waited for

    def __enter__(self):
        return self

    def __exit__(self, *details):
        self.process.kill()
        self.process.wait()
        if self._ours is not None:
            os.close(self._ours)

    def send(self, text):
        os.write(self._ours, text.encode())

    def expect(self, pattern):
        """Everything printed up to and with the pattern; what is behind it is for the next one."""
        seen, self._unread = self._unread, ""
        end = time.monotonic() + DEADLINE
        while not (found := re.search(pattern, seen)):
            assert select.select([self._ours], [], [], max(0.0, end - time.monotonic()))[0], seen
            try:
                seen += os.read(self._ours, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"gdb is gone: {seen}") from None
        self._unread = seen[found.end() :]
        return seen[: found.end()]

    def command(self, line):
        """Type a line; returns what was printed until the next prompt."""
        self.send(line + "\n")
        return self.expect(re.escape(self.PROMPT) + r"\Z")

    def confirmed(self, line):
        """Type a line that asks a question, and yes."""
        self.send(line + "\n")
        self.expect(r"\(y or n\) ")
        return self.command("y")

    def in_step(self):
        """The first llm-continue of a `hold`. Where a rank was attached is chance: it may have been past the place.
        From then on all of them come to it together."""
        said = " ".join(self.command("llm-continue").split())
        assert re.search("waits? at the same place|did not arrive", said), said

    def interrupt(self):
        """Ctrl-C, as the terminal delivers it."""
        self.send("\x03")

    def interrupt_until(self, pattern):
        """Ctrl-C until the pattern is there. One that comes while gdb runs Python ends that Python alone: a person
        presses it again."""
        end, seen = time.monotonic() + DEADLINE, self._unread
        while not re.search(pattern, seen):
            assert time.monotonic() < end, seen
            self.interrupt()
            again = time.monotonic() + 10
            while (
                not re.search(pattern, seen)
                and select.select([self._ours], [], [], max(0.0, again - time.monotonic()))[0]
            ):
                seen += os.read(self._ours, 65536).decode(errors="replace")
        self._unread = seen
        return self.expect(pattern)

    def hang_up(self):
        """The terminal window is closed."""
        os.close(self._ours)
        self._ours = None

    def wait(self):
        """Until gdb has ended; what it printed before."""
        end = time.monotonic() + DEADLINE
        seen, self._unread = self._unread, ""
        while self.process.poll() is None:
            assert time.monotonic() < end, f"gdb does not end: {seen}"
            if self._ours is not None and select.select([self._ours], [], [], 0.05)[0]:
                try:
                    seen += os.read(self._ours, 65536).decode(errors="replace")
                except OSError:
                    self.process.wait(DEADLINE)
        return seen

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()


def _take_terminal():
    import fcntl

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
