"""Calls of the target's functions: which thread, what comes back, and that nothing is left when one does not."""

import subprocess

import pytest

from tests.gdb.gdbrun import gdb_batch
from tests.inferiors.device_build import DeviceTarget

pytestmark = pytest.mark.gdb

PROBE = """
from gdbext.inside_gdb.calls.target_calls import Caller

def state():
    breakpoints = [one.enabled for one in gdb.breakpoints()]
    names = ("scheduler-locking", "language", "unwindonsignal", "confirm")
    return [gdb.selected_thread().num, breakpoints, [gdb.parameter(name) for name in names],
            gdb.execute("info signals SIGINT", to_string=True), gdb.newest_frame().type() == gdb.DUMMY_FRAME,
            gdb.execute("thread apply all info registers", to_string=True)]

def ask(*calls):
    said = []
    caller = Caller(said.append, 1)
    for arguments in calls:
        before = state()
        answer = caller.call(*arguments)
        reason = getattr(answer, "reason", None)
        same = state() == before
        print(json.dumps({"answer": None if reason else answer, "reason": reason, "same": same, "said": said}))
        said.clear()
"""


def run(tmp_path, gdb, attach, *before, calls=(("getpid",),), after=("detach",)):
    script = tmp_path / "ask.py"
    script.write_text(f"import json, gdb\n{PROBE}\nask(*{calls!r})\n")
    answer = gdb_batch(gdb, "set llm allow-calls on", attach, *before, f"source {script}", *after)
    assert len(answer.documents) == len(calls), answer.text
    return answer.documents


@pytest.mark.calls
def test_calls_that_return_crash_hang_and_are_not_there(any_gdb, tmp_path):
    calls = (
        ("getpid",),
        ("add", "long", [("long", 1 << 33), ("int", 5)]),  # a breakpoint in it
        ("crash",),
        ("stuck", "int", (), 1.0),
        ("no_such_function",),
        ("add", "long", [("long", -2), ("int", 1)]),
    )
    with DeviceTarget() as target:
        # The selected thread sleeps in what cannot be begun again, and the user passes SIGINT on.
        before = ("thread 2", "break add", "handle SIGINT nostop noprint pass")
        found = run(tmp_path, any_gdb, f"attach {target.pid}", *before, calls=calls)
        target.assert_free()
        one, two = (target.ask("beats") for _ in range(2))
    number, sum_, crash, stuck, absent, negative = found
    assert number["answer"] == target.pid
    assert sum_["answer"] == (1 << 33) + 5
    assert negative["answer"] == -1
    assert crash["reason"].startswith("crash was ended by ") and "where it was" in crash["reason"]
    assert stuck["reason"].startswith("stuck did not return within 1 s and was interrupted")
    assert absent["reason"] == "the process has no function no_such_function"
    assert all(one["same"] for one in found)  # registers of all threads, selection, settings, breakpoints
    assert number["said"][0].startswith("calls getpid in rank 1, thread ")
    assert int(two) >= int(one) > 0
    assert not [line for answer in found for line in answer["said"] if line.count("calls ") != 1]


@pytest.mark.calls
def test_a_lock_that_another_thread_holds(any_gdb, tmp_path):
    """Any call into the driver would wait for it: this one comes back, and the thread is not one of the driver's."""
    with DeviceTarget("lock") as target:
        calls = (("cudaStreamQuery", "int", [("void*", 0)], 1.0), ("getpid",))
        stuck, number = run(tmp_path, any_gdb, f"attach {target.pid}", calls=calls)
        target.assert_free()
    assert stuck["reason"].startswith("cudaStreamQuery did not return within 1 s")
    assert stuck["same"] and number["answer"] == target.pid


def test_who_must_not_be_disturbed(calling_gdb, tmp_path):
    """A sleep that was interrupted goes on from the kernel's note of it, which a call may overwrite."""
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        try:
            found = run(tmp_path, calling_gdb, f"attach {sleeper.pid}")
        finally:
            sleeper.kill()
    reason = "no thread can make the call: thread 1 is in a system call that cannot be begun again"
    assert found[0]["reason"] == reason
    assert found[0]["said"] == []


def test_without_permission_and_without_a_process(tmp_path):
    core = tmp_path / "core"
    with DeviceTarget() as target:
        refused = run(tmp_path, "gdb", f"attach {target.pid}", f"generate-core-file {core}", "set llm allow-calls off")
        in_core = run(tmp_path, "gdb", f"core-file {core}", after=())
    assert "set llm allow-calls on" in refused[0]["reason"]
    assert in_core[0]["reason"] == "a core file has no process in which a function could be called"
    assert refused[0]["said"] == in_core[0]["said"] == []
