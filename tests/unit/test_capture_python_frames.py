"""Python stacks of real processes against py-spy's, and damaged ones of made-up memory."""

import functools
import json
import os
import shutil
import struct
import subprocess
import sysconfig

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gdbext.capture.memory.maps import read_maps
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.python import objects, python_frames
from gdbext.capture.python.python_frames import Limits, freeze, resolve
from gdbext.capture.python.runtime import Interpreter, find_interpreter, interpreter_at
from gdbext.knowledge.runtimes.cpython import DEBUG_COOKIE, LAYOUTS, SELF_DESCRIBED
from gdbext.model.missing import Missing
from tests.inferiors.python_target import PythonTarget, interpreters

PYTHONS = interpreters()
EACH_PYTHON = pytest.mark.parametrize(
    "python", [PYTHONS[key] for key in sorted(PYTHONS)], ids=map(str, sorted(PYTHONS))
)
PY_SPY = shutil.which("py-spy", path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])) or "py-spy"


def look(pid, limits=None, **known):
    read = ProcessMemory(pid).read
    interpreter = find_interpreter(read_maps(pid), read, os.path.realpath(f"/proc/{pid}/exe"))
    assert not isinstance(interpreter, Missing), interpreter
    return resolve(freeze(interpreter, read, limits), read, **known)


def tids(pid):
    return {int(name) for name in os.listdir(f"/proc/{pid}/task")}


def by_py_spy(pid):
    """{tid: [(function, file, line)]}; with the bare name where py-spy gives it."""
    answer = subprocess.run([PY_SPY, "dump", "--json", "-p", str(pid)], capture_output=True, text=True, check=True)
    return {
        thread["os_thread_id"]: [(frame["name"], frame["filename"], frame["line"]) for frame in thread["frames"]]
        for thread in json.loads(answer.stdout)
    }


def same_moment(pid):
    """Our stacks and py-spy's of one state: a look before and one after agree, so nothing moved in between."""
    for _attempt in range(100):
        before, peer, after = look(pid, tids=tids(pid)), by_py_spy(pid), look(pid, tids=tids(pid))
        if before == after:
            return after, peer
    raise AssertionError("the target never stands still")


def bare(frames):
    return [(frame.function.rsplit(".", 1)[-1], frame.file, frame.line) for frame in frames]


@pytest.mark.process
@EACH_PYTHON
def test_every_shape_of_stack_is_the_one_py_spy_sees(python):
    with PythonTarget("python_shapes.py", python=python) as target:
        mine, peer = same_moment(target.pid)
    assert mine.problems == ()
    assert set(mine.threads) == set(peer) and len(peer) == len(target.words) + 1
    cut = [tid for tid, thread in mine.threads.items() if thread.truncated]
    assert [mine.threads[tid].truncated for tid in cut] == ["more than 2000 Python frames"]  # shape "recursion"
    for tid, thread in mine.threads.items():
        expected = [(name.rsplit(".", 1)[-1], file, line) for name, file, line in peer[tid]]
        assert bare(thread.frames) == expected[: 2000 if tid in cut else None]
        assert thread.gil is False
        assert all(frame.language == "python" for frame in thread.frames)


@pytest.mark.process
@EACH_PYTHON
def test_who_holds_the_lock_of_the_interpreter(python):
    with PythonTarget("python_gil.py", python=python) as target:
        threads = same_moment(target.pid)[0].threads
        assert threads[target.pid].gil is True
        assert [thread.gil for tid, thread in threads.items() if tid != target.pid] == [False]
        assert threads[target.pid].frames[0].function == "hold"


@pytest.mark.process
@EACH_PYTHON
def test_a_forked_child_has_its_own_thread_id(python):
    with PythonTarget("python_fork.py", python=python) as target:
        child = int(target.words[0])
        target.until_it_reads(child)
        threads = same_moment(child)[0].threads
    assert list(threads) == [child]
    assert [frame.function for frame in threads[child].frames] == ["child", "main", "<module>"]


@pytest.mark.process
def test_registers_tell_which_thread_is_which():
    with PythonTarget("python_shapes.py", "sleep", "queue") as target:
        read = ProcessMemory(target.pid).read
        frozen = freeze(
            find_interpreter(read_maps(target.pid), read, os.path.realpath(f"/proc/{target.pid}/exe")), read
        )
        mapping = {thread.pthread: number for number, thread in enumerate(frozen.threads, 1)}
        assert set(resolve(frozen, read, pthreads=mapping).threads) == {1, 2, 3}
        foreign = resolve(frozen, read, tids=())
    assert foreign.threads == {}
    assert foreign.problems == ("3 Python threads could not be told apart from the others of the process",)


@pytest.mark.process
def test_limits_are_kept_and_said():
    with PythonTarget("python_shapes.py", "deep", "sleep") as target:
        few = look(target.pid, Limits(frames=5))
        one = look(target.pid, Limits(threads=1))
    assert max(len(thread.frames) for thread in few.threads.values()) == 5
    assert "more than 5 Python frames" in {thread.truncated for thread in few.threads.values()}
    assert len(one.threads) == 1
    assert one.problems == ("only the first 1 Python threads were read",)


class Memory:
    """A piece of memory that tests write."""

    BASE = 0x10000

    def __init__(self, size=0x10000):
        self.data = bytearray(size)

    def put(self, address, form, *values):
        struct.pack_into("<" + form, self.data, address - self.BASE, *values)

    def read(self, address, size):
        start = address - self.BASE
        return bytes(self.data[start : start + size]) if start >= 0 and start + size <= len(self.data) else None


STR, BYTES, CODE = 0x18000, 0x18100, 0x18200
RUNTIME, INTERPRETER, STATE, FRAMES, OBJECTS = 0x10000, 0x11000, 0x12000, 0x13000, 0x15000


@pytest.fixture
def modern():
    """A process with the oldest thinkable 3.14: every offset is another one than any real build has."""
    memory, row = Memory(), SELF_DESCRIBED[3, 14]
    numbers = [0] * 100
    numbers[0], numbers[1] = int.from_bytes(DEBUG_COOKIE, "little"), 0x030E00F0
    offsets = {
        **{"interpreters": 0x500, "next_interpreter": 0x10, "threads": 0x18, "gil_pointer": 0x20, "gil": 0x80},
        **{"gil_locked": 0x84, "gil_holder": 0x88, "next_thread": 0x40, "frame": 0x48, "pthread": 0x50},
        **{"native_id": 0x58, "frame_previous": 0x20, "frame_code": 0x28, "frame_instruction": 0x30},
        **{"frame_owner": 0x38, "code_filename": 0x60, "code_name": 0x68, "code_line_table": 0x70},
        **{"code_first_line": 0x78, "code_instructions": 0x90, "bytes_length": 0x18, "bytes_data": 0x28},
        **{"str_state": 0x20, "str_length": 0x18, "str_ascii_header": 0x28},
    }
    assert set(offsets) == set(row.fields)
    for name, position in row.fields.items():
        numbers[position] = offsets[name]
    memory.put(RUNTIME, "100Q", *numbers)
    memory.put(RUNTIME + 0x500, "Q", INTERPRETER)
    memory.put(INTERPRETER + 0x18, "QQ", STATE, INTERPRETER + 0x80)
    memory.put(INTERPRETER + 0x84, "iQ", 1, STATE)
    memory.put(STATE + 0x48, "QQQ", FRAMES, 0, 77)
    for address, name in ((STR, b"str"), (BYTES, b"bytes"), (CODE, b"code")):
        memory.put(address + 24, "Q", address + 64)
        memory.put(address + 64, "8s", name)
    return memory


def put_frame(memory, number, code, owner, last=False):
    here = FRAMES + number * 0x40
    memory.put(here + 0x20, "QQQB", 0 if last else here + 0x40, code | 1 if code else 0, code + 0x90 + 2, owner)


def put_code(memory, address, name):
    for at, text in ((address + 0x200, name), (address + 0x300, "m.py")):
        memory.put(at + 8, "Q", STR)
        memory.put(at + 0x18, "QQ", len(text), 1 << 2 | 1 << 5 | 1 << 6)
        memory.put(at + 0x28, f"{len(text)}s", text.encode())
    memory.put(address + 0x400 + 8, "Q", BYTES)
    memory.put(address + 0x400 + 0x18, "Q", 4)
    memory.put(address + 0x400 + 0x28, "4B", 0xE8, 0, 0xE8, 6)  # one unit on the first line, one three further
    memory.put(address + 8, "Q", CODE)
    memory.put(address + 0x60, "QQQi", address + 0x300, address + 0x200, address + 0x400, 10)


def modern_interpreter(memory):
    return interpreter_at(RUNTIME, "libpython3.14.so.1.0", None, memory.read)


def test_a_release_that_describes_itself(modern):
    put_code(modern, OBJECTS, "inner")
    put_code(modern, OBJECTS + 0x800, "outer")
    put_frame(modern, 0, OBJECTS, owner=0)
    put_frame(modern, 1, OBJECTS + 0x800, owner=1)
    put_frame(modern, 2, 0, owner=3)  # of an eval frame
    put_frame(modern, 3, OBJECTS + 0x800, owner=0)
    put_frame(modern, 4, 0, owner=3)
    put_frame(modern, 5, 0, owner=3, last=True)  # base_frame of the thread state: no eval frame
    stacks = resolve(freeze(modern_interpreter(modern), modern.read), modern.read)
    assert stacks.version == "3.14" and stacks.problems == ()
    (thread,) = stacks.threads.values()
    assert [[frame.function for frame in group] for group in thread.groups] == [["inner", "outer"], ["outer"]]
    assert {(frame.file, frame.line) for frame in thread.frames} == {("m.py", 13)}
    assert thread.gil is True


def test_an_idle_thread_has_no_groups(modern):
    put_frame(modern, 0, 0, owner=3, last=True)
    stacks = resolve(freeze(modern_interpreter(modern), modern.read), modern.read)
    assert stacks.threads[77].groups == ()


def test_a_circle_of_frames_ends(modern):
    put_code(modern, OBJECTS, "inner")
    put_frame(modern, 0, OBJECTS, owner=0)
    modern.put(FRAMES + 0x20, "Q", FRAMES)
    stacks = resolve(freeze(modern_interpreter(modern), modern.read), modern.read)
    assert stacks.threads[77].truncated == "the Python frames form a circle"


def test_a_circle_of_threads_ends(modern):
    modern.put(STATE + 0x40, "Q", STATE)
    frozen = freeze(modern_interpreter(modern), modern.read)
    assert len(frozen.threads) == 1
    assert frozen.problems == ("Python's list of threads is damaged or cannot be read",)


@pytest.mark.parametrize(
    ("address", "form", "value"),
    [
        (OBJECTS + 8, "Q", STR),  # no code object
        (OBJECTS + 0x200 + 8, "Q", CODE),  # name is no str
        (OBJECTS + 0x200 + 0x20, "Q", 0),  # not compact
        (OBJECTS + 0x200 + 0x18, "Q", 1 << 60),  # longer than there is memory
        (OBJECTS + 0x68, "Q", 3),  # wild pointer
    ],
)
def test_objects_are_not_trusted(modern, address, form, value):
    put_code(modern, OBJECTS, "inner")
    put_frame(modern, 0, OBJECTS, owner=0, last=True)
    modern.put(address, form, value)
    stacks = resolve(freeze(modern_interpreter(modern), modern.read), modern.read)
    (frame,) = stacks.threads[77].frames
    if value == 1 << 60:
        assert frame.function.startswith("inner") and len(frame.function) < 600
    else:
        assert frame.function is None
        assert stacks.problems == ("1 x a Python code object cannot be read",)


def test_unreadable_frames_are_said(modern):
    modern.put(STATE + 0x48, "Q", 0x999000)
    stacks = resolve(freeze(modern_interpreter(modern), modern.read), modern.read)
    assert stacks.threads[77].truncated == "a Python frame cannot be read"


@functools.lru_cache(maxsize=None)
def interpreter_of(version):
    return Interpreter(version, Memory.BASE, "libpython", LAYOUTS[version])


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from(sorted(LAYOUTS)), st.lists(st.integers(0, 0x2000), max_size=400), st.binary(max_size=64))
def test_any_memory_ends_without_an_error(version, words, noise):
    memory = Memory(0x2000)
    memory.data[: 8 * len(words)] = struct.pack(f"<{len(words)}Q", *(Memory.BASE + word for word in words))
    memory.data[-len(noise) or len(memory.data) :] = noise
    stacks = resolve(freeze(interpreter_of(version), memory.read, Limits(threads=20, frames=50)), memory.read)
    assert len(stacks.threads) <= 20


# --- an interpreter that is none ---


@pytest.mark.parametrize(
    "field", ["frame_previous", "code_line_table", "str_ascii_header", "next_thread", "interpreters"]
)
def test_offsets_that_an_interpreter_tells_of_itself_are_not_believed(modern, field):
    """Each frame would be read up to the offset of its last field: 60 MB, 2,000 times."""
    position = SELF_DESCRIBED[(3, 14)].fields[field]
    modern.put(RUNTIME + 8 * position, "Q", 60 << 20)
    found = modern_interpreter(modern)
    assert isinstance(found, Missing) and "damaged" in found.reason


class Endless:
    """Memory in which every pointer leads to a further object, and no list has an end."""

    def __init__(self, row):
        self.row, self.reads = row, 0

    def read(self, address, size):
        self.reads += 1
        at = address & ~7
        words = [self._word(at + 8 * number) for number in range((size + 15) // 8)]
        return struct.pack(f"<{len(words)}Q", *words)[address - at :][:size]

    def _word(self, address):
        return (address + 0x10000) & ((1 << 47) - 1)


@pytest.mark.parametrize("version", sorted(LAYOUTS))
def test_lists_without_an_end_have_limits(version):
    memory = Endless(LAYOUTS[version])
    interpreter = Interpreter(version, 0x7F0000000000, "libpython", LAYOUTS[version])
    limits = Limits(threads=4096, frames=200, all_frames=10_000, seconds=60)
    frozen = freeze(interpreter, memory.read, limits)
    count = sum(len(thread.frames) for thread in frozen.threads)
    assert 10_000 <= count <= 10_200
    assert any("only the first" in problem for problem in frozen.problems)
    stacks = resolve(frozen, memory.read)
    assert len(stacks.problems) < 20


def test_line_tables_without_a_measure_cost_lines_and_no_time(modern, monkeypatch):
    monkeypatch.setattr(objects, "_MOST_TABLES", 6)
    for number in range(3):
        put_code(modern, OBJECTS + 0x800 * number, f"function{number}")
        put_frame(modern, number, OBJECTS + 0x800 * number, owner=0, last=number == 2)
    stacks = resolve(freeze(modern_interpreter(modern), modern.read), modern.read)
    frames = stacks.threads[77].frames
    assert [(frame.function, frame.line) for frame in frames] == [
        ("function0", 13),
        ("function1", None),
        ("function2", None),
    ]
    assert stacks.problems == ("the line tables are too long to be read: Python frames lack lines",)


def test_names_have_their_time(modern, monkeypatch):
    monkeypatch.setattr(objects, "_SECONDS", -1.0)
    put_code(modern, OBJECTS, "inner")
    put_frame(modern, 0, OBJECTS, owner=0, last=True)
    stacks = resolve(freeze(modern_interpreter(modern), modern.read), modern.read)
    assert [frame.function for frame in stacks.threads[77].frames] == [None]
    assert stacks.problems == ("the code objects took more than 10 s: Python frames lack names",)


def test_pages_that_are_kept_have_a_measure():
    pages = python_frames.Pages(lambda address, size: bytes(size))
    for number in range(python_frames._MOST_PAGES + 10):
        pages.read(number << 12, 8)
    assert len(pages._pages) <= python_frames._MOST_PAGES
