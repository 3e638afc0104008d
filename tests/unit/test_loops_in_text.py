"""Loops without a way out: found in the text of a program's files, and what it means that a thread sleeps in one."""

import os
import sys
import time
from dataclasses import replace

import pytest

from gdbext.discovery.proc.loops_in_text import loops_in_text
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.activity import Activity
from gdbext.model.clients import WaitingClient
from gdbext.model.codes import Code, LoopKind
from gdbext.model.locks import Peer
from gdbext.model.missing import Missing
from gdbext.model.stack import Frame, LoopInText, ThreadStack
from tests.unit.stacks import stack
from tests.unit.test_analysis_at_work import FUTEX, MAIN, lasting, process

PID = 100
LOOPS = {
    "while True:\n    sleep(1)": LoopKind.SLEEPS,
    "while True: sleep(1)": LoopKind.SLEEPS,
    "while 1:\n    beat()\n    sleep(1)": LoopKind.ENDLESS,
    "for number in itertools.count():\n    show(number)\n    sleep(1)": LoopKind.ENDLESS,
    "while True:\n    for one in queues:\n        if one.empty():\n            break\n    sleep(1)": LoopKind.ENDLESS,
    "try:\n    while True:\n        sleep(1)\nexcept KeyboardInterrupt:\n    pass": LoopKind.SLEEPS,
    "while True:\n    try:\n        sleep(1)\n    except KeyboardInterrupt:\n        break": LoopKind.SLEEPS,
    "try:\n    while True:\n        sleep(1)\nexcept ToldToEnd:\n    pass": LoopKind.SLEEPS,
    "while True:\n    def stop():\n        return 1\n    sleep(1)": LoopKind.SLEEPS,
}
"""Loops of Python without a way out, and whether they do nothing but sleep."""
if sys.version_info >= (3, 10):
    LOOPS["while True:\n    match word:\n        case 1:\n            sleep(1)"] = LoopKind.SLEEPS
LEFT = (
    "while not ready:\n    sleep(1)",
    "for _ in range(9):\n    sleep(1)",
    "while True:\n    if ready:\n        break\n    sleep(1)",
    "while True:\n    if ready:\n        return\n    sleep(1)",
    "while True:\n    assert not failed\n    sleep(1)",
    "while True:\n    if ready:\n        sys.exit()\n    sleep(1)",
    "while True:\n    take(next(items))\n    sleep(1)",
    "while True:\n    while not ready:\n        sleep(1)",
    "try:\n    while True:\n        step()\n        sleep(1)\nexcept Done:\n    pass",
    "while True:\n    pass\nsleep(1)",
    "sleep(1)",
    "while True\n    sleep(1)",
    "while True:  #" + "x" * 5000 + "\n    sleep(1)",
)
"""Texts that have none around the sleep, or that cannot be parsed."""


def sleeps_in(folder, text, *, inner=(), outer=(), since=-60.0, peers=(), **fields):
    """What is found of a thread that sleeps in the body of a function of this text. `since`: when the text was written,
    in seconds after the start of the process."""
    lines = text.split("\n")
    began = int(time.clock_gettime(time.CLOCK_BOOTTIME) - 30)
    written(folder, "program.py", "def serve():\n" + "".join(f"    {line}\n" for line in lines), since)
    counters = f"{PID} (python) S 1 1 1 0 -1 0 {'0 ' * 8}0 0 1 0 {began * os.sysconf('SC_CLK_TCK')} 0 0"
    (folder / str(PID) / "stat").write_text(counters)
    line = next(number for number, one in enumerate(lines, 2) if "sleep(1)" in one)
    frames = (*inner, Frame("serve", file="/program.py", line=line, language="python"), *outer)
    thread = ThreadStack("1", frames, **{"lwp": 7, "sleeps": 0.5, **fields})
    return loops_in_text(ProcFS(str(folder)), PID, [thread], peers)


def written(folder, name, text, since=-60.0):
    path = folder / str(PID) / "root" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    at = time.time() - 30 + since
    os.utime(path, (at, at))


@pytest.mark.parametrize("text", LOOPS)
def test_a_loop_without_a_way_out(tmp_path, text):
    assert sleeps_in(tmp_path, text) == (LoopInText(7, LOOPS[text]),)


@pytest.mark.parametrize("text", LEFT)
def test_one_that_may_end(tmp_path, text):
    assert sleeps_in(tmp_path, text) == ()


FOR_EVER = "while True:\n    sleep(1)"
NAP = Frame("nap", file="/helper.py", line=2, language="python")


def test_the_loop_of_a_caller_counts_where_the_called_function_has_none(tmp_path):
    assert sleeps_in(tmp_path, FOR_EVER, inner=[NAP]) == ()  # its text is not there
    written(tmp_path, "helper.py", "def nap():\n    time.sleep(1)\n")
    assert len(sleeps_in(tmp_path, FOR_EVER, inner=[NAP])) == 1


def test_a_text_that_was_written_after_the_process_had_begun_says_nothing(tmp_path):
    assert sleeps_in(tmp_path, FOR_EVER, since=10.0) == ()


CHANGES = Missing("whoever changes these files", Code.CHANGES)


def test_who_waits_for_changes_of_files_is_asked_too_and_nobody_else(tmp_path):
    assert sleeps_in(tmp_path, FOR_EVER, sleeps=None) == ()
    watches = Peer(thread=7, file="inotify", processes=CHANGES)
    assert len(sleeps_in(tmp_path, FOR_EVER, sleeps=None, peers=[watches])) == 1


def test_who_waits_outside_of_any_loop_is_told_of_the_main_thread_alone(tmp_path):
    reads = {"sleeps": None, "syscall": (0, 3, 0, 0, 0, 0, 0)}
    assert sleeps_in(tmp_path, "sleep(1)", lwp=PID, **reads) == (LoopInText(PID, LoopKind.NONE),)
    assert sleeps_in(tmp_path, "sleep(1)", **reads) == ()
    assert sleeps_in(tmp_path, "while left:\n    sleep(1)", lwp=PID, **reads) == ()
    assert sleeps_in(tmp_path, "sleep(1)", lwp=PID, sleeps=None, syscall=(7, 1, 1, 500, 0, 0, 0)) == ()


def test_what_a_forked_process_has_of_its_parents_stack_says_nothing(tmp_path):
    written(tmp_path, "multiprocessing/process.py", "def _bootstrap(self):\n    self.run()\n")
    written(tmp_path, "parent.py", "for number in range(4):\n    start(number)\n")
    started = Frame("BaseProcess._bootstrap", file="/multiprocessing/process.py", line=2, language="python")
    parent = Frame("<module>", file="/parent.py", line=2, language="python")
    fields = {"lwp": PID, "sleeps": None, "syscall": (0, 3, 0, 0, 0, 0, 0)}
    assert len(sleeps_in(tmp_path, "sleep(1)", outer=[started, parent], **fields)) == 1
    assert sleeps_in(tmp_path, "sleep(1)", outer=[parent], **fields) == ()


# --- what it means ---

NAPS = ("clock_nanosleep@libc.so.6", "time_sleep@python3", "serve@program.py:3")
SLEEPS = stack(*NAPS, *MAIN, state="S", sleeps=0.5, switches=2, cpu=0.0, syscall=(230, 1, 1, 1, 0, 0, 0))
ACCEPTS = stack("accept4@libc.so.6", "accept@socket.py:294", "take@program.py:7", *MAIN, switches=0, state="S")
SUMS = stack("lock_wait@libc.so.6", "wait@threading.py:327", "total@program.py:5", syscall=FUTEX, switches=0, state="S")
EXITS = stack(
    "do_futex_wait@libc.so.6", "_shutdown@threading.py:1590", "main@python3", syscall=FUTEX, switches=0, state="S"
)
READS = stack("read@libc.so.6", "os_read@python3", "changed@program.py:4", *MAIN, switches=0, state="S",
              syscall=(0, 3, 0, 0, 0, 0, 0))  # fmt: skip
IDLE = {"activity": Activity(1.2), "handlers": ()}


def going(*threads, only_sleeps=False, of=0, **fields):
    """A process one of whose threads is in an endless loop."""
    kind = LoopKind.SLEEPS if only_sleeps else LoopKind.ENDLESS
    return process(0, *threads, loops_in_text=(LoopInText(100 + 10 * of, kind),), **IDLE, **fields)


@pytest.mark.parametrize(
    "one",
    [
        going(SLEEPS),
        going(SLEEPS, ACCEPTS, only_sleeps=True),
        going(EXITS, SLEEPS, of=1),
        going(READS, peers=(Peer(100, "inotify", CHANGES),)),
    ],
    ids=["it does something in there", "it keeps a server up", "the main thread has ended", "it watches files"],
)
def test_a_program_that_goes_round_for_ever_does_not_hang(one):
    found = lasting(one)
    assert (found.cause, found.confidence, found.finding) == ("not-a-hang", "low", False)
    assert "in a loop that has no way out" in found.summary


@pytest.mark.parametrize(
    "one",
    [
        going(SLEEPS, only_sleeps=True),
        going(SLEEPS, SUMS),
        process(0, READS, peers=(Peer(100, "inotify", CHANGES),), **IDLE),
        replace(going(SLEEPS, ACCEPTS), clients=(WaitingClient("tcp 127.0.0.1:80", 900, "curl", 20.0),)),
    ],
    ids=["nobody is there for whom", "another thread waits", "it may wait for one file", "a client waits"],
)
def test_it_stays_open_where_somebody_may_wait_in_vain(one):
    assert lasting(one).cause != "not-a-hang"
