"""The core file itself, read by another library than ours. That gdb reads it is shown in tests/gdb."""

import os
import resource
import stat
import struct

import pytest
from elftools.elf.elffile import ELFFile

from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.capture.cores.minicore import write_core
from gdbext.capture.machine import ARCHITECTURES
from gdbext.capture.memory.maps import Mapping, MemoryMap
from gdbext.capture.memory.process_memory import Block
from gdbext.model.errors import GdbextError

MAPS = MemoryMap(
    [
        Mapping(0x1000, 0x3000, "r-xp", 0x2000, "08:01", 7, "/opt/grö\udcff/serve"),
        Mapping(0x5000, 0x6000, "rw-p", 0, "00:00", 0, ""),
        Mapping(0x7000, 0x8000, "r--p", 0, "08:01", 8, "/lib/x.so (deleted)"),
    ]
)


def literal(row):
    words = tuple(range(100, 100 + row.registers))
    return ProcessCopy(
        pid=41,
        threads=(ThreadCopy(41, words), ThreadCopy(43, problem="gone"), ThreadCopy(42, words[::-1], signal=10)),
        blocks=(Block(0x5000, b"stack of main   "), Block(0x7FFF0000, b"odd")),
        maps=MAPS,
        auxv=struct.pack("<4Q", 6, 4096, 0, 0),
        exe="/opt/a/very-long-name-of-an-engine",
        architecture=row,
    )


@pytest.mark.parametrize("row", ARCHITECTURES, ids=lambda row: row.name)
def test_what_stands_in_a_core(tmp_path, row):
    copy, path = literal(row), tmp_path / "core"
    write_core(copy, str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with open(path, "rb") as stream:
        elf = ELFFile(stream)
        assert (elf.header.e_type, elf.header.e_machine) == ("ET_CORE", f"EM_{row.name.upper()}")
        (notes, *loads) = elf.iter_segments()
        assert [(load["p_vaddr"], load.data()) for load in loads] == [tuple(block) for block in copy.blocks]
        raw = {}
        for note in notes.iter_notes():
            raw.setdefault(note["n_type"], []).append(note)
    statuses = [note["n_descdata"] for note in raw["NT_PRSTATUS"]]
    assert [len(status) for status in statuses] == [112 + 8 * row.registers + 8] * 2  # struct elf_prstatus
    assert [struct.unpack_from("<i", status, 32)[0] for status in statuses] == [41, 42]
    assert struct.unpack_from(f"<{row.registers}Q", statuses[1], 112) == copy.threads[2].registers
    assert struct.unpack_from("<h", statuses[1], 12) == (10,)
    files = raw["NT_FILE"][0]["n_desc"]
    places = [(entry.vm_start, entry.vm_end, entry.page_offset) for entry in files.Elf_Nt_File_Entry]
    assert places == [(0x1000, 0x3000, 2), (0x7000, 0x8000, 0)]
    names = [bytes(name) for name in files.filename]
    assert names == ["/opt/grö".encode() + b"\xff/serve", b"/lib/x.so (deleted)"]
    assert raw["NT_AUXV"][0]["n_descdata"] == copy.auxv
    process = raw["NT_PRPSINFO"][0]["n_desc"]
    assert process.pr_pid == 41
    assert bytes(process.pr_psargs).rstrip(b"\0") == b"very-long-name-of-an-engine"


def test_nothing_to_write(tmp_path):
    path = tmp_path / "core"
    with pytest.raises(GdbextError, match="nothing was copied of pid 5"):
        write_core(ProcessCopy(5, problems=("gone",)), str(path))
    assert not path.exists()


def test_a_file_that_is_there_is_never_overwritten(tmp_path):
    path = tmp_path / "core"
    path.write_text("precious")
    with pytest.raises(GdbextError, match=r"cannot be written to .*/core: File exists"):
        write_core(literal(ARCHITECTURES[0]), str(path))
    assert path.read_text() == "precious"


def test_a_full_disk_leaves_nothing(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        with pytest.raises(GdbextError, match="cannot be written"):
            write_core(literal(ARCHITECTURES[0]), str(tmp_path / "core"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == []
