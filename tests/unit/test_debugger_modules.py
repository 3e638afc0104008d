"""Which file an address lies in. The module needs no gdb."""

import os
import struct

from gdbext.capture.memory.maps import read_maps
from gdbext.inside_gdb.base.modules import Modules

PAGE = 4096


def core_with(files, path):
    """A core file with nothing in it but an NT_FILE note."""
    names = b"".join(name.encode() + b"\0" for _, _, _, name in files)
    note = struct.pack("<QQ", len(files), PAGE)
    note += b"".join(struct.pack("<QQQ", start, end, offset // PAGE) for start, end, offset, _ in files) + names
    data = struct.pack("<III8s", 5, len(note), 0x46494C45, b"CORE") + note + bytes(-len(note) % 4)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    program = struct.pack("<IIQQQQQQ", 4, 0, 120, 0, 0, len(data), 0, 4)
    path.write_bytes(header + program + data)
    return str(path)


def test_files_of_a_core(tmp_path):
    files = [
        (0x10000, 0x11000, 0, "/lib/one.so"),
        (0x11000, 0x15000, 0x1000, "/lib/one.so"),
        (0x20000, 0x21000, 0, "/lib/two.so"),
        (0x22000, 0x23000, 0x1000, "/lib/two.so"),  # as lld lays it out: a page further up than in the file
        (0x30000, 0x31000, 0, "/lib/gone.so (deleted)"),
    ]
    modules = Modules.of_core(core_with(files, tmp_path / "core"))
    assert modules.find(0x11234) == ("/lib/one.so", 0x1234)
    assert modules.find(0x22010) == ("/lib/two.so", 0x2010)
    assert modules.find(0x30001) == ("/lib/gone.so", 1)
    assert modules.find(0x15000) == (None, None)
    assert modules.find(0) == modules.find((1 << 64) - 1) == (None, None)
    assert modules.paths == ("/lib/one.so", "/lib/two.so", "/lib/gone.so")


def test_what_is_no_core_has_no_files(tmp_path):
    for number, data in enumerate((b"", b"\x7fELF\x02", b"\x7fELF\x02" + bytes(59), b"text" * 100)):
        path = tmp_path / str(number)
        path.write_bytes(data)
        assert Modules.of_core(str(path)).paths == ()
    assert Modules.of_core(str(tmp_path / "absent")).paths == ()


def test_a_count_that_lies(tmp_path):
    path = core_with([(0x10000, 0x11000, 0, "/lib/one.so")], tmp_path / "core")
    data = bytearray((tmp_path / "core").read_bytes())
    data[140:148] = struct.pack("<Q", 1 << 60)
    (tmp_path / "core").write_bytes(data)
    assert Modules.of_core(path).find(0x99) == (None, None)


def test_our_own_process():
    modules = Modules.of_process(os.getpid())
    program = next(mapping for mapping in read_maps(os.getpid()) if mapping.is_file and mapping.executable)
    assert modules.find(program.start)[0] == program.file
    vdso = [mapping for mapping in read_maps(os.getpid()) if mapping.path == "[vdso]"]
    assert all(modules.find(mapping.start + 16) == ("[vdso]", 16) for mapping in vdso)
    assert Modules.of_process(1 << 22).find(0x1000) == (None, None)
