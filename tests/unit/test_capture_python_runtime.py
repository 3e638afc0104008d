"""Finding the interpreter: in real processes, and in made-up memory where a release cannot be had."""

import os
import shutil
import subprocess
import sys

import pytest

from gdbext.capture.memory.maps import parse_maps, read_maps
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.python.runtime import find_interpreter, interpreter_at, interpreter_of
from gdbext.knowledge.runtimes.cpython import DEBUG_COOKIE, LAYOUTS, SELF_DESCRIBED
from gdbext.model.codes import Code
from gdbext.model.missing import Missing
from tests.inferiors.python_target import PythonTarget, interpreters

PYTHONS = interpreters()
OWN_MAPS = read_maps(os.getpid())
OWN = os.path.realpath("/proc/self/exe")


@pytest.mark.process
@pytest.mark.parametrize("version", sorted(PYTHONS), ids=str)
def test_a_running_interpreter_is_found_with_its_release(version):
    with PythonTarget("python_shapes.py", "sleep", python=PYTHONS[version]) as target:
        found = interpreter_of(target.pid)
        assert not isinstance(found, Missing), found
        assert found.version == version == found.layout.version
        assert "python" in found.module


@pytest.mark.process
def test_a_process_without_python():
    sleeper = subprocess.Popen([shutil.which("cat")], stdin=subprocess.PIPE)
    try:
        found = interpreter_of(sleeper.pid)
    finally:
        sleeper.communicate()
    assert isinstance(found, Missing)
    assert found.reason == "not a Python process" or "symbols not found" in found.reason


@pytest.mark.process
def test_a_process_that_has_ended():
    sleeper = subprocess.Popen([shutil.which("true")])
    sleeper.wait()
    assert interpreter_of(sleeper.pid) == Missing("No such file or directory")


def test_no_maps_at_all():
    assert find_interpreter([], lambda address, size: None) == Missing("not a Python process", Code.NOT_PYTHON)


def test_memory_that_cannot_be_read():
    found = find_interpreter(OWN_MAPS, lambda address, size: None, OWN)
    assert isinstance(found, Missing)
    assert "_PyRuntime" in found.reason and "cannot be read" in found.reason


def runtime_that_says(version, free_threaded=0):
    """A `read` that answers every address with the head of a `_Py_DebugOffsets`."""
    word = (version[0] << 24 | version[1] << 16).to_bytes(8, "little")
    head = DEBUG_COOKIE + word + free_threaded.to_bytes(8, "little")
    return lambda address, size: (head + bytes(size))[:size]


def test_a_release_that_is_not_known_yet():
    assert find_interpreter(OWN_MAPS, runtime_that_says((3, 99)), OWN) == Missing("Python 3.99 is not known")


def test_a_release_older_than_the_rows():
    read = {(0x1000, 16): bytes(16)}.get
    found = interpreter_at(0x1000, "libpython3.7m.so.1.0", (3, 7), lambda *where: read(where))
    assert found == Missing("Python 3.7 is not known")


def test_a_library_that_is_loaded_and_not_used():
    found = interpreter_at(0x1000, "libpython3.9.so.1.0", (3, 9), lambda address, size: bytes(size))
    assert found == Missing("Python 3.9 in libpython3.9.so.1.0 is not initialised, or was finalised")


def test_a_free_threaded_build_is_refused():
    found = find_interpreter(OWN_MAPS, runtime_that_says((3, 13), 1), OWN)
    assert isinstance(found, Missing)
    assert found.reason.startswith("free-threaded build of Python 3.13")


@pytest.fixture
def copied_library(tmp_path):
    """Mappings of a file of our choice, as if it were a libpython."""

    def mapped(content):
        path = tmp_path / "libpython3.11.so.1.0"
        path.write_bytes(content)
        return parse_maps(f"10000-20000 r--p 00000000 08:01 1 {path}\n")

    return mapped


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(60), b"\x7fELF\x02\x01" + b"\xff" * 400]
)
def test_a_damaged_file_is_a_reason_not_an_error(copied_library, content):
    found = find_interpreter(copied_library(content), lambda address, size: bytes(size))
    assert isinstance(found, Missing)
    assert "libpython3.11.so.1.0" in found.reason


def test_a_library_without_the_symbol(copied_library):
    with open(shutil.which("cat"), "rb") as stream:
        found = find_interpreter(copied_library(stream.read()), lambda address, size: bytes(size))
    assert isinstance(found, Missing)
    assert found.reason.startswith("interpreter symbols not found in ")


def test_a_file_that_is_gone():
    maps = parse_maps("10000-20000 r--p 00000000 08:01 1 /nowhere/libpython3.11.so.1.0\n")
    found = find_interpreter(maps, lambda address, size: bytes(size))
    assert found == Missing("/nowhere/libpython3.11.so.1.0: No such file or directory")


def test_a_file_that_was_replaced():
    maps = parse_maps("10000-20000 r--p 00000000 08:01 1 /x/libpython3.11.so.1.0 (deleted)\n")
    found = find_interpreter(maps, lambda address, size: bytes(size))
    assert found == Missing("/x/libpython3.11.so.1.0 was replaced after the process started")


@pytest.mark.process
def test_a_stripped_library_is_found_by_its_section(tmp_path):
    """`.PyRuntime` survives strip; here a copy of our interpreter has its symbol names blanked."""
    with PythonTarget("python_shapes.py", "sleep") as target:
        true = interpreter_of(target.pid)
        with open(true.module, "rb") as stream:
            content = stream.read()
        path = tmp_path / os.path.basename(true.module)
        path.write_bytes(content.replace(b"\0_PyRuntime\0", b"\0_XyRuntime\0"))
        text = "".join(
            f"{m.start:x}-{m.end:x} {m.permissions} {m.offset:x} 08:01 1 {path}\n"
            for m in read_maps(target.pid)
            if m.file == true.module
        )
        found = find_interpreter(parse_maps(text), ProcessMemory(target.pid).read)
    assert b"\0_PyRuntime\0" in content
    if sys.version_info >= (3, 10):
        assert found.runtime == true.runtime
    else:
        assert isinstance(found, Missing)


def test_every_release_has_one_row_and_rows_say_where_they_come_from():
    assert [(3, minor) for minor in range(8, 15)] == sorted([*LAYOUTS, *SELF_DESCRIBED])
    for row in [*LAYOUTS.values(), *SELF_DESCRIBED.values()]:
        assert row.source
