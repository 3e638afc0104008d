"""The text of /proc/PID/maps, with the names that make it hard."""

import os

from hypothesis import given
from hypothesis import strategies as st

from gdbext.capture.memory.maps import Mapping, MemoryMap, parse_maps, read_maps

TEXT = """\
55d0a0000000-55d0a0001000 r--p 00000000 08:01 131 /opt/an engine/bin/serve
55d0a0001000-55d0a0009000 r-xp 00001000 08:01 131 /opt/an engine/bin/serve
7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n\
7f0000001000-7f0000002000 r-xp 00002000 08:01 77                         /tmp/new\\012line.so (deleted)
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
nonsense
1-2 x
"""


def test_every_kind_of_line():
    maps = parse_maps(TEXT)
    assert len(maps) == 6
    program, code, anonymous, deleted, stack, vsyscall = maps
    assert program == Mapping(0x55D0A0000000, 0x55D0A0001000, "r--p", 0, "08:01", 131, "/opt/an engine/bin/serve")
    assert code.executable and not program.executable
    assert not anonymous.path and not anonymous.is_file
    assert deleted.deleted and deleted.file == "/tmp/new\nline.so"
    assert not code.deleted and code.file == code.path
    assert stack.path == "[stack]" and not stack.is_file
    assert vsyscall.executable


def test_find():
    maps = parse_maps(TEXT)
    assert maps.find(0x55D0A0000FFF).offset == 0
    assert maps.find(0x55D0A0001000).offset == 0x1000
    assert maps.find(0x55D0A0009000) is None
    assert maps.find(0) is None
    assert maps.find(0xFFFFFFFFFFFFFFFF) is None
    assert MemoryMap([]).find(5) is None


@given(st.text())
def test_no_text_is_a_crash(text):
    for mapping in parse_maps(text):
        assert mapping.start >= 0


def test_our_own_map_knows_our_code():
    maps = read_maps(os.getpid())
    assert any(mapping.executable and mapping.is_file for mapping in maps)
    assert [mapping.start for mapping in maps] == sorted(mapping.start for mapping in maps)
