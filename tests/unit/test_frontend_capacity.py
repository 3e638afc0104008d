"""How many gdbs: by the work, the cores and the memory at hand."""

import os

import pytest

from gdbext.collect import gdbs_side_by_side
from gdbext.collect.gdbs_side_by_side import gdbs_for, memory_at_hand, most_gdbs

GIB, MIB = 1 << 30, 1 << 20


def rows(count, *files):
    return [{"files": [{"path": str(file), "size": file.stat().st_size} for file in files]} for _ in range(count)]


@pytest.fixture
def machine(monkeypatch):
    def make(cores, memory):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
        monkeypatch.setattr(gdbs_side_by_side, "memory_at_hand", lambda: memory)

    return make


def test_by_work_and_cores(machine):
    machine(4, 64 * GIB)
    assert gdbs_for(rows(1), 50 * MIB) == 1, "the stacks of one rank cannot be shared"
    assert gdbs_for(rows(8), 3 * MIB) == 1, "not worth a start"
    assert gdbs_for(rows(8), 9 * MIB) == 4
    assert gdbs_for(rows(3), 50 * MIB) == 3
    machine(1, 64 * GIB)
    assert gdbs_for(rows(8), 50 * MIB) == 1
    machine(256, 640 * GIB)
    assert gdbs_for(rows(64), 500 * MIB) == gdbs_side_by_side.MOST


def test_big_files_take_memory_in_each_gdb(machine, tmp_path):
    machine(8, 6 * GIB)
    library = tmp_path / "libbig.so"
    with open(library, "wb") as file:
        file.truncate(GIB)
    assert gdbs_for(rows(8), 50 * MIB) == 8
    assert gdbs_for(rows(8, library), 50 * MIB) == 2
    machine(8, GIB)
    assert gdbs_for(rows(8, library), 50 * MIB) == 1
    machine(8, None)
    assert gdbs_for(rows(8, library), 50 * MIB) == 8, "nothing is known of the memory"


def test_those_that_start_before_the_files_are_known_have_room_too(machine):
    machine(16, GIB)
    assert most_gdbs(16, 50 * MIB) == 5
    machine(16, 50 * MIB)
    assert most_gdbs(16, 50 * MIB) == 1
    assert most_gdbs(16, 50 * MIB, wanted=4) == 4


def test_as_many_as_asked_for(machine):
    machine(1, 1)
    assert gdbs_for(rows(8), 8, wanted=3) == 3
    assert gdbs_for(rows(2), 8, wanted=9) == 2


def test_the_least_of_host_and_container(tmp_path):
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (groups / "memory").mkdir(parents=True)
    proc.mkdir()
    assert memory_at_hand(str(proc), str(groups)) is None
    (proc / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 8388608 kB\n")
    assert memory_at_hand(str(proc), str(groups)) == 8 * GIB
    (groups / "memory.max").write_text("max\n")
    (groups / "memory.current").write_text(f"{GIB}\n")
    assert memory_at_hand(str(proc), str(groups)) == 8 * GIB
    (groups / "memory.max").write_text(f"{3 * GIB}\n")
    assert memory_at_hand(str(proc), str(groups)) == 2 * GIB
    (groups / "memory" / "memory.limit_in_bytes").write_text(f"{GIB}\n")
    (groups / "memory" / "memory.usage_in_bytes").write_text(f"{2 * GIB}\n")
    assert memory_at_hand(str(proc), str(groups)) == 0


def test_this_machine_has_some():
    assert memory_at_hand() > 0
