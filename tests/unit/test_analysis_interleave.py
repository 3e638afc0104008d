"""One stack of two, on stacks as gdb shows them for CPython 3.8 to 3.13."""

from dataclasses import replace

import pytest

from gdbext.analysis.stacks.interleave import interleave, interleave_all
from gdbext.model.python import PythonThread
from gdbext.model.stack import Frame, ThreadStack

LIBC, PYTHON, LIBPYTHON = "/lib/libc.so.6", "/usr/bin/python3.11", "/opt/lib/libpython3.11.so.1.0"
EVAL = "_PyEval_EvalFrameDefault"


def native(*frames, module=PYTHON, truncated=None):
    """A stack of "function" (in the interpreter), ("function", module) or None (nameless, in the interpreter)."""
    pairs = [frame if isinstance(frame, tuple) else (frame, module) for frame in frames]
    return ThreadStack(
        "1", tuple(Frame(function=function, module=where) for function, where in pairs), truncated=truncated
    )


def python(*groups, **known):
    """Groups of Python functions, each a string of names."""
    frames = (tuple(Frame(name, file="m.py", line=1, language="python") for name in group.split()) for group in groups)
    return PythonThread(tuple(frames), **known)


def shown(stack):
    return [("py:" if frame.language == "python" else "") + str(frame.function) for frame in stack.frames]


THREAD = (("start_thread", LIBC), ("clone3", LIBC))


def test_each_eval_frame_becomes_its_group():
    stack = native(
        ("clock_nanosleep", LIBC),
        "time_sleep",
        "cfunction_vectorcall_O",
        "PyObject_Vectorcall",
        EVAL,
        "_PyEval_Vector",
        "method_vectorcall",
        "list_sort_impl",
        "PyObject_Vectorcall",
        EVAL,
        "PyEval_EvalCode",
        "pythread_wrapper",
        *THREAD,
    )
    merged = interleave(stack, python("leaf inner", "outer", gil=True))
    expected = ["clock_nanosleep", "time_sleep", "py:leaf", "py:inner", "py:outer", "start_thread", "clone3"]
    assert shown(merged) == expected
    assert merged.problems == () and merged.truncated is None and merged.gil is True


@pytest.mark.parametrize(
    ("native_number", "number"),
    [(0, 0), (1, 1), (2, 2), (4, 2), (5, 4), (6, 5), (7, 6)],
    ids=["none", "sleep", "what goes", "the eval frame", "behind it", "outer", "all"],
)
def test_what_was_counted_in_native_frames_is_counted_anew(native_number, number):
    """`still` and `left` are numbers of frames, and some frames go while others come."""
    stack = native(
        ("clock_nanosleep", LIBC), "time_sleep", "cfunction_vectorcall_O", "PyObject_Vectorcall", EVAL, *THREAD
    )
    merged = interleave(replace(stack, still=native_number, left=native_number), python("leaf outer"))
    assert (merged.still, merged.left) == (number, number), shown(merged)


@pytest.mark.parametrize(
    "name",
    [EVAL, EVAL + ".cold", EVAL + ".localalias", EVAL + ".lto_priv.0", EVAL + ".part.0.cold", "PyEval_EvalFrameEx"],
)
def test_clones_of_the_eval_function_are_recognised(name):
    assert shown(interleave(native(("read", LIBC), name, *THREAD), python("f"))) == ["read", "py:f", *dict(THREAD)]


def test_a_door_to_the_eval_function_does_not_count():
    stack = native(("read", LIBC), EVAL, "PyEval_EvalFrameEx", EVAL, "PyEval_EvalFrameEx")
    merged = interleave(stack, python("f", "g"))
    assert shown(merged) == ["read", "py:f", "py:g"] and merged.problems == ()


def test_an_inlined_eval_frame_does_not_count():
    stack = ThreadStack("1", (Frame(EVAL, PYTHON, inlined=True), Frame(EVAL, PYTHON)))
    assert shown(interleave(stack, python("f"))) == ["py:f"]


def test_libraries_between_python_frames_stay():
    stack = native(
        ("syscall", LIBC),
        EVAL,
        ("closure_fcn", "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so"),
        (None, "/lib/libffi.so.8"),
        ("qsort_r", LIBC),
        ("THPModule_run", "/venv/torch/lib/libtorch_python.so"),
        ("PyObject_Call", LIBPYTHON),
        EVAL,
    )
    kept = ["syscall", "py:f", "None", "qsort_r", "THPModule_run", "py:g"]
    assert shown(interleave(stack, python("f", "g"))) == kept


def test_frames_without_a_name_in_the_interpreter_are_folded():
    stack = native(("read", LIBC), None, None, EVAL, None, "Py_BytesMain", ("__libc_start_main", LIBC), None)
    assert shown(interleave(stack, python("f"))) == ["read", "py:f", "__libc_start_main"]


def test_the_innermost_function_of_the_interpreter_says_what_it_waits_for():
    stack = native(("do_futex_wait", LIBC), "PyThread_acquire_lock_timed", "lock_PyThread_acquire_lock", EVAL)
    expected = ["do_futex_wait", "PyThread_acquire_lock_timed", "lock_PyThread_acquire_lock", "py:f"]
    assert shown(interleave(stack, python("f"))) == expected


@pytest.mark.parametrize(
    "name", ["take_gil", "PyEval_RestoreThread", "Py_FinalizeEx", "gc_collect_main", "PyOS_AfterFork_Child"]
)
def test_what_means_something_stays_wherever_it_stands(name):
    stack = native(("pthread_cond_timedwait", LIBC), EVAL, name, EVAL)
    assert shown(interleave(stack, python("f", "g"))) == ["pthread_cond_timedwait", "py:f", name, "py:g"]


def test_a_program_that_contains_the_interpreter_keeps_its_own_frames():
    stack = native(("read", LIBC), EVAL, "PyEval_EvalCode", "PyRun_StringFlags", "serve", "main", module="/opt/engine")
    assert shown(interleave(stack, python("f"))) == ["read", "py:f", "serve", "main"]


def test_stacks_without_modules_are_folded_by_name():
    stack = native(
        "read", EVAL, "_PyFunction_Vectorcall", "slot_tp_call", "_PyObject_MakeTpCall", EVAL, "main", module=None
    )
    assert shown(interleave(stack, python("f", "g"))) == ["read", "py:f", "py:g", "main"]


def test_a_thread_without_python_frames_is_as_it_was():
    stack = native(("read", LIBC), "take_gil", *THREAD)
    merged = interleave(stack, python(gil=False))
    assert merged.frames == stack.frames and merged.gil is False


def test_a_thread_of_which_only_the_python_frames_are_known():
    merged = interleave(ThreadStack("1", ()), python("f", "g"))
    assert shown(merged) == ["py:f", "py:g"] and merged.problems == ()


def test_an_eval_frame_without_python_frames_yet():
    stack = native("PyObject_Free", EVAL, EVAL)
    assert shown(interleave(stack, PythonThread(((), *python("f").groups)))) == ["PyObject_Free", "py:f"]


def test_an_eval_frame_that_just_begins_is_an_innermost_one():
    merged = interleave(native(EVAL, EVAL, EVAL), python("f", "g"))
    assert shown(merged) == [EVAL, "py:f", "py:g"]
    assert merged.problems == ("3 eval frames for 2 groups of Python frames: paired from the outermost",)


def test_a_native_stack_that_is_cut_off_is_paired_from_the_innermost():
    stack = native(("read", LIBC), EVAL, "PyObject_Call", truncated="more than 3 frames")
    merged = interleave(stack, python("f", "g", "h"))
    assert shown(merged) == ["read", "py:f", "py:g", "py:h"]
    assert merged.truncated == "more than 3 frames"
    assert "the native stack is cut off" in merged.problems[0]


def test_a_python_stack_that_is_cut_off_is_paired_from_the_innermost():
    stack = native(("read", LIBC), EVAL, ("call", "libx.so"), EVAL, EVAL, *THREAD)
    merged = interleave(stack, python("f", "g", truncated="more than 2 Python frames"))
    assert shown(merged) == ["read", "py:f", "call", "py:g", EVAL, "start_thread", "clone3"]
    assert merged.truncated == "more than 2 Python frames"
    assert "the Python stack is cut off" in merged.problems[0]


def test_no_eval_frame_has_a_name():
    """A static interpreter without symbols: where it was entered again cannot be told."""
    stack = native(("read", LIBC), None, None, ("callback", "libx.so"), None, "take_gil", *THREAD)
    merged = interleave(stack, python("f", "g"))
    assert shown(merged) == ["read", "py:f", "py:g", "callback", "take_gil", "start_thread", "clone3"]
    assert "no frame of the interpreter has a name" in merged.problems[0]


def test_no_frame_can_be_attributed_at_all():
    merged = interleave(native(None, None, module=None), python("f"))
    assert shown(merged) == ["None", "None", "py:f"] and merged.problems


def test_nameless_frames_fill_the_gap_when_their_number_fits():
    """The split-off part of a stripped eval function has no name."""
    stack = native(("read", LIBC), EVAL, ("callback", "libx.so"), None, ("other", "liby.so"), EVAL)
    merged = interleave(stack, python("f", "g", "h"))
    assert shown(merged) == ["read", "py:f", "callback", "py:g", "other", "py:h"] and merged.problems == ()


def test_what_cannot_be_paired_is_shown_together_and_said():
    stack = native(
        ("read", LIBC), EVAL, ("a", "libx.so"), None, None, ("b", "libx.so"), None, EVAL, ("main", "x"), EVAL
    )
    merged = interleave(stack, python("f", "g", "h", "i", "j"))
    assert shown(merged) == ["read", "py:f", "a", "py:g", "py:h", "b", "py:i", "main", "py:j"]
    assert "between the certain pairs" in merged.problems[0]
    stack = native(("read", LIBC), EVAL, ("a", "libx.so"), None, None, ("b", "libx.so"), None, EVAL, EVAL)
    merged = interleave(stack, python("f", "g", "h", "i"))
    assert shown(merged) == ["read", "py:f", "a", "py:g", "b", "py:h", "py:i"]
    assert merged.problems == (
        "3 eval frames for 4 groups of Python frames: those between the certain pairs are shown together",
    )


def test_a_walk_that_ended_early_without_saying_so():
    merged = interleave(native(("read", LIBC), EVAL), python("f", "g"))
    assert shown(merged) == ["read", "py:f", "py:g"] and merged.problems


def test_all_threads_of_a_process_in_their_order_and_those_without_a_native_stack():
    stacks = (
        replace(native(("poll", LIBC)), lwp=8),
        replace(native(("read", LIBC), EVAL), lwp=7),
        native(("gone", LIBC)),
    )
    whole = interleave_all(stacks, {7: python("f"), 9: python("g")})
    assert [shown(stack) for stack in whole] == [["poll"], ["read", "py:f"], ["gone"], ["py:g"]]
    assert (whole[3].id, whole[3].lwp) == ("9", 9)
    assert interleave_all(stacks, {}) == stacks


def test_no_python_frame_is_lost_or_doubled_whatever_the_stacks_are():
    parts = [EVAL, None, ("lib", "libx.so"), "PyObject_Call"]
    for number in range(4**5):
        stack = native(*(parts[number // 4**place % 4] for place in range(5)))
        for groups in (["f"], ["f g", "h"], ["f", "g", "h"], ["f", "g", "h", "i"]):
            for truncated in (None, "cut"):
                merged = interleave(stack, python(*groups, truncated=truncated))
                functions = [frame.function for frame in merged.frames if frame.language == "python"]
                assert functions == " ".join(groups).split()
                libraries = sum(frame.module == "libx.so" for frame in stack.frames)
                assert sum(frame.module == "libx.so" for frame in merged.frames) == libraries
