"""Which files the stacks run through: moved, fixed, deleted, replaced, in another mount namespace."""

import errno
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.capture.memory.maps import Mapping, MemoryMap
from gdbext.capture.memory.process_memory import Block
from gdbext.capture.stop.copy_of_process import copy_process
from gdbext.capture.symbols.mapped_libraries import libraries_on_stacks
from gdbext.safe_open import files
from tests.inferiors.capture_process import CaptureProcess, build

pytestmark = pytest.mark.process


def build_id(path):
    with open(path, "rb") as stream:
        return next(ELFFile(stream).get_section_by_name(".note.gnu.build-id").iter_notes())["n_desc"]


def entry(path):
    with open(path, "rb") as stream:
        return ELFFile(stream).header.e_entry


def start_address(copy):
    """AT_ENTRY: where the kernel put the first instruction of the program."""
    words = struct.unpack(f"<{len(copy.auxv) // 8}Q", copy.auxv)
    return dict(zip(words[::2], words[1::2]))[9]


UNSHARE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--mount"]


@pytest.mark.parametrize("flags", [(), ("-no-pie",), ("-Wl,-z,noseparate-code",)])
def test_program_and_libc(flags):
    with CaptureProcess(program=build(*flags)) as process:
        copy = copy_process(process.pid)
        found = {os.path.basename(file.path): file for file in libraries_on_stacks(copy)}
    program = found[os.path.basename(process.program)]
    libc = found["libc.so.6"]
    assert any(libc.start <= thread.pc < libc.end for thread in copy.threads)
    assert program.bias + entry(process.program) == start_address(copy)
    assert (program.bias == 0) == ("-no-pie" in flags)
    for file in found.values():
        assert file.problem is None and not file.deleted
        assert file.opens_as == file.path
        assert file.build_id == build_id(file.path)


@pytest.fixture
def own_copy(tmp_path):
    """The program as a file of our own, to be removed and replaced."""
    return shutil.copy(build(), tmp_path / "program")


def the_program(process):
    copy = copy_process(process.pid)
    files = [file for file in libraries_on_stacks(copy) if file.path == str(process.program)]
    assert [file.bias + entry(build()) for file in files] == [start_address(copy)]
    return files[0]


def without(monkeypatch, *ways):
    """Without `map_files`, as for everybody but root; without `exe`, as for a library."""
    real = files.descriptor

    def refusing(path, *rest):
        if path.startswith("/proc/") and any(way in path for way in ways):
            raise PermissionError(errno.EPERM, "Operation not permitted", path)
        return real(path, *rest)

    monkeypatch.setattr(files, "descriptor", refusing)


def test_a_removed_file(own_copy, monkeypatch):
    with CaptureProcess(program=own_copy) as process:
        os.unlink(own_copy)
        without(monkeypatch, "map_files", "exe")
        file = the_program(process)
    assert file.deleted
    what, way = file.problem.split("; ")
    assert what == f"{own_copy} was removed after it was loaded (or is out of reach): no names for its frames"
    assert "root of the host" in way
    assert file.build_id is not None  # from memory


def test_a_replaced_file(own_copy, monkeypatch):
    with CaptureProcess(program=own_copy) as process:
        os.unlink(own_copy)
        shutil.copy("/bin/true", own_copy)
        without(monkeypatch, "map_files", "exe")
        file = the_program(process)
    assert file.deleted
    what, _ = file.problem.split("; ")
    assert what == f"{own_copy} was replaced after it was loaded: its frames would get wrong names"
    assert file.build_id == build_id(build())  # of what is loaded, not of what lies there


def test_a_program_is_found_without_its_name_by_everybody_who_may_trace_it(own_copy, monkeypatch):
    with CaptureProcess(program=own_copy) as process:
        os.unlink(own_copy)
        without(monkeypatch, "map_files")
        file = the_program(process)
        assert (file.problem, file.opens_as) == (None, f"/proc/{process.pid}/exe")
        shutil.copy("/bin/true", own_copy)  # another one in its place
        assert the_program(process).opens_as == f"/proc/{process.pid}/exe"
        problems = [one.problem for one in libraries_on_stacks(copy_process(process.pid))]
    assert problems == [None] * len(problems), "no library is taken for it"


def test_the_same_build_installed_again_is_no_problem(own_copy):
    with CaptureProcess(program=own_copy) as process:
        os.unlink(own_copy)
        shutil.copy(build(), own_copy)
        file = the_program(process)
    assert (file.problem, file.opens_as) == (None, str(own_copy))


@pytest.mark.skipif(os.getuid() != 0, reason="the kernel opens map_files for root only")
def test_root_can_open_what_has_no_name_any_more(own_copy):
    with CaptureProcess(program=own_copy) as process:
        os.unlink(own_copy)
        file = the_program(process)
        with open(file.opens_as, "rb") as stream, open(build(), "rb") as same:
            assert stream.read() == same.read()
    assert file.problem is None


def test_a_process_in_another_mount_namespace(tmp_path):
    script = 'mount -t tmpfs none "$1" && cp "$0" "$1/program" && shift && exec "$@"'
    if subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "none", str(tmp_path)], capture_output=True).returncode:
        pytest.skip("mount namespaces are not to be had here (a container without CAP_SYS_ADMIN)")
    inside = tmp_path / "program"
    wrapper = [*UNSHARE, "sh", "-c", script, build(), str(tmp_path)]
    with CaptureProcess(program=inside, wrapper=wrapper) as process:
        assert not inside.exists()  # here
        file = the_program(process)
        assert file.opens_as == f"/proc/{process.pid}/root{inside}"
        assert file.opened.read(0, 4) == b"\x7fELF"
    assert file.problem is None


@pytest.fixture
def covered(tmp_path):
    """Starts a program on a file system, and puts another one over that, whose first file has the same number."""
    started = []

    def cover(make):
        script = 'mount -t tmpfs none "$1" && cp "$0" "$1/program" && shift && exec "$@"'
        wrapper = [*UNSHARE, "sh", "-c", script, build(), str(tmp_path)]
        started.append(CaptureProcess(program=tmp_path / "program", wrapper=wrapper))
        process = started[0].__enter__()
        inside = ["nsenter", "--mount", "--user", "--preserve-credentials", "--target", str(process.pid)]
        inside = inside if os.getuid() else ["nsenter", "--mount", "--target", str(process.pid)]
        over = f'mount -t tmpfs none "{tmp_path}" && {make} "{tmp_path}/program"'
        subprocess.run([*inside, "sh", "-c", over], check=True)
        return process

    if subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "none", str(tmp_path)], capture_output=True).returncode:
        pytest.skip("mount namespaces are not to be had here (a container without CAP_SYS_ADMIN)")
    yield cover
    for process in started:
        process.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("make", "what"), [("mkfifo", "it is a FIFO"), ("cp /bin/true", "its frames would get wrong names")]
)
def test_a_file_of_the_same_number_is_not_taken_for_the_mapped_one(covered, monkeypatch, make, what):
    process = covered(make)
    there = os.stat(f"/proc/{process.pid}/root{process.program}")
    mapped = next(one for one in copy_process(process.pid).maps if one.path == str(process.program))
    assert there.st_ino == mapped.inode, "else the trap is none"
    if os.getuid() == 0:
        assert the_program(process).problem is None, "the kernel keeps a way to it for root"
    without(monkeypatch, "map_files")
    assert the_program(process).opens_as == f"/proc/{process.pid}/exe", "and one to the program"
    without(monkeypatch, "map_files", "exe")
    file = the_program(process)
    assert what in file.problem and file.opened is None
    assert file.build_id == build_id(build())


def test_when_the_process_is_gone_its_files_still_are_found():
    with CaptureProcess() as process:
        copy = copy_process(process.pid)
    (program,) = [file for file in libraries_on_stacks(copy) if file.path == process.program]
    assert program.problem is None and program.bias + entry(build()) == start_address(copy)


def literal(mapping, word):
    """A copy with one word on its stack, of a process that is gone."""
    child = subprocess.Popen(["true"])
    child.wait()
    stack = Block(0x7000, struct.pack("<4Q", 0, word, 0, 1))
    return ProcessCopy(child.pid, (ThreadCopy(1, (5, 6)),), (stack,), MemoryMap([mapping]))


def numbers(path):
    """Device and inode of a file, as a map has them."""
    if not str(path).startswith("/"):
        return "00:00", 0
    found = os.stat(path)
    return f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}", found.st_ino


def test_what_is_no_object_file_is_left_out(tmp_path):
    script = tmp_path / "text"
    script.write_text("#!/bin/sh\n")
    for path in (str(script), "[vdso]", "", "/dev/zero"):
        mapping = Mapping(0x10000, 0x20000, "r-xp", 0, *numbers(path), path)
        assert libraries_on_stacks(literal(mapping, 0x10010)) == ()


def test_a_file_that_nobody_can_read_any_more_is_named():
    mapping = Mapping(0x12000, 0x20000, "r-xp", 0x2000, "00:00", 9, "/nowhere/libgone.so (deleted)")
    (file,) = libraries_on_stacks(literal(mapping, 0x12010))
    assert (file.path, file.bias, file.deleted) == ("/nowhere/libgone.so", 0x10000, True)
    assert "was removed" in file.problem
    assert libraries_on_stacks(literal(mapping, 0x20000)) == ()
    assert libraries_on_stacks(literal(mapping, 0x11FFF)) == ()


def test_damaged_files_are_no_crash(tmp_path):
    good = Path(build()).read_bytes()
    path = tmp_path / "damaged"
    for size in (0, 3, 63, 64, 100, 200, 700):
        for noise in (b"", b"\xff" * 700):
            path.write_bytes(good[:size] + noise)
            mapping = Mapping(0x12000, 0x20000, "r-xp", 0x1000, *numbers(path), str(path))
            libraries_on_stacks(literal(mapping, 0x12010))
