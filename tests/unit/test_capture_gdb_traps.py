"""What a gdb that attaches would open by itself, and wait for."""

import os
import subprocess

import pytest

from gdbext.capture.copies.copied_process import read_proc
from gdbext.capture.gdb_traps import trap_among
from gdbext.capture.memory.maps import read_maps
from gdbext.capture.memory.process_memory import Memory, ProcessMemory
from gdbext.capture.symbols.link_map import names_in
from tests.inferiors.capture_process import CaptureProcess


@pytest.fixture
def library(tmp_path):
    (tmp_path / "library.c").write_text("int function(void) { return 1; }")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "library.so", tmp_path / "library.c"], check=True)
    return tmp_path / "library.so"


@pytest.mark.process
def test_files_of_a_real_process_are_no_trap():
    with CaptureProcess() as process:
        paths = [mapping.file for mapping in read_maps(process.pid) if mapping.is_file]
        named = names_in(ProcessMemory(process.pid), read_proc(process.pid, "auxv"))
        assert trap_among([*paths, *named], f"/proc/{process.pid}/root") is None
    assert {name for name in named if name.endswith("/libc.so.6")}, "as its dynamic linker names it"


@pytest.mark.process
@pytest.mark.parametrize(
    "name", ["library.so", "library.so-gdb.py", "library.so-gdb.scm", "library.debug", ".debug/library.debug"]
)
def test_a_fifo_that_gdb_would_open(library, name):
    place = library.parent / name
    place.parent.mkdir(exist_ok=True)
    apart = library.with_name("library.debug")
    subprocess.run(["objcopy", "--only-keep-debug", library, apart], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={apart}", library], check=True)
    apart.unlink()
    assert trap_among([str(library)]) is None
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    found = trap_among(["/nowhere", str(library)])
    assert found.startswith(f"gdb would wait for {place}, which is a FIFO")
    assert trap_among([str(library)], f"/proc/{os.getpid()}/root") == found


def test_a_terminal_is_one_too_and_a_mapped_device_is_not():
    ours, theirs = os.openpty()
    try:
        assert "which is a terminal" in trap_among([os.ttyname(theirs)])
    finally:
        os.close(ours)
        os.close(theirs)
    assert trap_among(["/dev/zero", "/dev/shm", "/proc/self/mem"]) is None


class Words(Memory):
    """Memory that is what a dictionary says."""

    def __init__(self, words):
        self.words = words

    def read(self, address, size):
        data = b"".join(self.words.get(address + at, 0).to_bytes(8, "little") for at in range(0, size + 8, 8))
        return data[:size]


def test_a_list_of_libraries_may_be_a_circle():
    auxv = b"".join(word.to_bytes(8, "little") for word in (3, 0x1000, 5, 1))
    words = {0x1000: 2, 0x1010: 0x2000, 0x2000: 21, 0x2008: 0x3000, 0x3008: 0x4000}
    words.update({0x4008: 0x5000, 0x4018: 0x4100, 0x4108: 0x5000, 0x4118: 0x4000, 0x5000: 0x6F732F})
    assert names_in(Words(words), auxv) == ["/so", "/so"]
    assert names_in(Words({}), auxv) == names_in(Words(words), b"") == []
