"""A copy of a process, opened by gdb as a core file, shows what gdb shows when it is attached to the process."""

import re
import subprocess

import pytest

from gdbext.capture.cores.minicore import write_core
from gdbext.capture.stop.copy_of_process import copy_process
from gdbext.capture.symbols.mapped_libraries import libraries_on_stacks
from tests.inferiors.capture_process import CaptureProcess

pytestmark = pytest.mark.gdb


def gdb(program, *commands):
    """What gdb prints for the commands."""
    words = [program, "-nx", "-nh", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off"]
    settings = ["set width 0", "set print frame-arguments none", "set auto-solib-add off"]
    for command in [*settings, *commands]:
        words += ["-ex", command]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL).stdout


def open_core(process, copy, path):
    """Commands that load what is on the stacks, and the core."""
    write_core(copy, str(path))
    files = libraries_on_stacks(copy)
    load = [f"add-symbol-file {file.opens_as} -o {file.bias:#x}" for file in files if file.path != process.program]
    return [f"file {process.program}", *load, f"core-file {path}"]


def stacks(text):
    """{tid: its frames} of the output of `thread apply all bt`."""
    found = {}
    frames = []  # gdb prints the innermost frame of a core when it opens it: that one is forgotten
    for line in text.splitlines():
        thread = re.match(r"Thread \d+ \(.*\bLWP (\d+)\)", line)
        if thread:
            frames = found.setdefault(int(thread[1]), [])
        elif line.startswith("#"):
            frames.append(re.sub(r" (at|from) .*", "", line))
    return found


def still(frames):
    """The frames; of a loop that spins not where in it."""
    return [re.sub(r"0x\w+ in spin ", "spin ", frame) for frame in frames]


def test_a_core_shows_the_frames_that_attaching_shows(any_gdb, tmp_path):
    with CaptureProcess(threads=106, busy=1, depth=1500) as process:
        process.wait_asleep(running=1)
        copy = copy_process(process.pid)
        core = stacks(gdb(any_gdb, *open_core(process, copy, tmp_path / "core"), "thread apply all bt"))
        attach = ["set auto-solib-add on", f"attach {process.pid}", "thread apply all bt", "detach"]
        live = stacks(gdb(any_gdb, *attach))
        beating = {tid for tid in process.tids() if process.name(tid) == "heartbeat"}
        process.assert_free()
    assert copy.state == "ok", copy.problems
    assert len(core) == len(live) == 110
    # A heartbeat runs between two naps: it was somewhere else at another time.
    assert len(beating) == 2
    others = [tid for tid in core if tid not in beating]
    assert {tid: still(core[tid]) for tid in others} == {tid: still(live[tid]) for tid in others}
    assert max(len(frames) for frames in core.values()) > 1500
    assert next(reversed(list(core))) == process.pid  # gdb numbers them as the core does and prints the first one last


def test_a_thread_in_a_signal_handler_on_a_stack_of_its_own(any_gdb, tmp_path):
    with CaptureProcess(threads=2, mode="alternate") as process:
        copy = copy_process(process.pid)
        text = gdb(any_gdb, *open_core(process, copy, tmp_path / "core"), "thread apply all bt")
    (handling,) = [frames for frames in stacks(text).values() if any("on_other_stack" in frame for frame in frames)]
    functions = " ".join(handling)
    assert re.search(r"wait_sleep .*on_other_stack .*<signal handler called>.*interrupted_here .*alternate ", functions)
    assert "clone" in handling[-1]


def test_a_thread_that_could_not_be_stopped(turn_gdb, tmp_path):
    with CaptureProcess(threads=2, mode="uninterruptible") as process:
        copy = copy_process(process.pid)
        text = gdb(turn_gdb, *open_core(process, copy, tmp_path / "core"), "thread apply all bt")
    assert [frames for frames in stacks(text).values() if any(" uninterruptible " in frame for frame in frames)]


def test_the_unwind_table_of_the_kernels_code_is_there(turn_gdb, tmp_path):
    with CaptureProcess(threads=2) as process:
        copy = copy_process(process.pid)
        text = gdb(turn_gdb, *open_core(process, copy, tmp_path / "core"), "info files")
    (vdso,) = [mapping for mapping in copy.maps if mapping.path == "[vdso]"]
    assert re.search(rf"\.eh_frame in system-supplied DSO at {vdso.start:#x}", text)
