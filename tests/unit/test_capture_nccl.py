"""One communicator in memory, the rows that tell its shape, and the ways to find it."""

import ctypes
import mmap
import os

import pytest

from gdbext.capture.memory.maps import parse_maps
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.nccl import library as nccl_library
from gdbext.capture.nccl.communicator_memory import Layout, read_communicator
from gdbext.capture.nccl.library import layouts_of, rows_for
from gdbext.capture.nccl.memory_scan import BLOCK, Budget, anonymous, resident_of, scan
from gdbext.capture.nccl.pointer_search import Search, addresses_of, host_only, scan_where_some_are_missing
from gdbext.knowledge.runtimes.nccl import FIELDS, LAYOUTS, MAGIC
from gdbext.model.communicator import Communicator
from gdbext.model.missing import Missing
from gdbext.model.snapshot_files.codec import decode, encode
from tests.unit.nccl_blocks import HASH, HEAP, Memory, block, layout_of, layouts, mapped, memory_map
from tests.unit.stacks import frame, stack

PAGE = 4096
AT = HEAP + 0x10010
NEW, OLD, ANCIENT = "2.27.5", "2.21.5", "2.20.5"


def read(release=NEW, at=AT, **changes):
    """Read a communicator that was written in the shape of that release."""
    layout = layout_of(release)
    memory = Memory().put(HEAP, bytes(64)).put(at, block(layout.row, **changes))
    return read_communicator(memory.read, at, "a test", [layout])


# --- rows ---


@pytest.mark.parametrize("row", LAYOUTS, ids=lambda row: f"{row.releases[0]}-{row.source[-16:]}")
def test_rows_are_possible_layouts(row):
    """Members lie inside, do not overlap, and are aligned as compilers do it."""
    sizes = {"u8": 1, "i32": 4, "u32": 4}
    places = sorted((field.offset, sizes.get(field.type, 8) * (field.count or 1)) for field in row.fields.values())
    assert all(offset + size <= following for (offset, size), (following, _) in zip(places, places[1:]))
    assert places[-1][0] + places[-1][1] <= row.size
    assert all(field.offset % sizes.get(field.type, 8) == 0 for field in row.fields.values())
    assert {"commHash", "rank", "nRanks", "cudaDev", "initState", "asyncResult"} <= set(row.fields) <= set(FIELDS)
    assert row.source.startswith("DWARF of nvidia-nccl-cu1")


def test_a_release_has_its_row_or_none():
    assert [row.size for row in rows_for("2.27.5")] == [1080320]
    assert [row.size for row in rows_for("2.21.5")] == [16280, 16288], "the wheels for CUDA 11 and 12 differ"
    assert rows_for("2.28.5") == rows_for("2.33.1") == rows_for(None) == ()


# --- one communicator ---


def test_what_a_new_release_tells():
    one = read()
    assert (one.problem, one.hash, one.rank, one.n_ranks, one.local_rank, one.device) == (None, HASH, 1, 4, 1, 1)
    assert (one.bus_id, one.init_state, one.async_error) == ("0000:3b:00.0", "ncclSuccess", "ncclSuccess")
    assert (one.aborted, one.destroyed, one.finalized) == (False, False, False)
    assert one.counts == {"broadcast": 0, "reduce": 0, "all_gather": 3, "reduce_scatter": 0, "all_reduce": 4}
    assert one.layout == "offsets of NCCL 2.27.5"
    assert isinstance(one.revoked, Missing)
    assert "revokedFlag" in one.revoked.reason


def test_what_an_old_release_does_not_tell_is_missing_and_not_zero():
    one = read(OLD)
    assert one.readable
    assert isinstance(one.counts, Missing)
    assert "2.23.4" in one.counts.reason
    assert isinstance(one.destroyed, Missing)


def test_states_that_are_no_success():
    assert read(asyncResult=6).async_error == "ncclRemoteError"
    assert read(initState=7).init_state == "ncclInProgress"
    assert read(asyncResult=77).async_error == "ncclResult_t 77"
    assert isinstance(read(abortFlag=0xDEAD000).aborted, Missing)
    assert isinstance(read(abortFlag=0).aborted, Missing)
    assert read("2.28.9", revokedFlag=1).revoked is True


def test_an_abort_shows_through_the_pointer():
    layout = layout_of(NEW)
    memory = Memory().put(HEAP, b"\1\0\0\0").put(AT, block(layout.row))
    assert read_communicator(memory.read, AT, "a test", [layout]).aborted is True


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"startMagic": 0}, "startMagic is 0x0"),
        ({"endMagic": MAGIC + 1}, "endMagic is 0x280028002800281"),
        ({"rank": 4}, "rank 4 of 4"),
        ({"rank": -1, "nRanks": -1}, "rank -1 of -1"),
        ({"nRanks": 1 << 30}, "of 1073741824"),
        ({"cudaDev": -5}, "device -5"),
    ],
)
def test_what_is_no_communicator_is_said_in_one_line(changes, said):
    one = read(**changes)
    assert not one.readable
    assert said in one.problem
    assert "\n" not in one.problem
    assert isinstance(one.hash, Missing)


def test_counts_without_sense_leave_the_rest():
    one = read(seqNumber=(0, 0, 1 << 60, 0, 0))
    assert one.readable
    assert isinstance(one.counts, Missing)


@pytest.mark.parametrize("kept", [0, 8, 1066168, 1080312, 1080319])
def test_memory_that_ends_within_it(kept):
    layout = layout_of(NEW)
    memory = Memory().put(AT, block(layout.row)[:kept])
    one = read_communicator(memory.read, AT, "a test", [layout])
    assert not one.readable
    assert "cannot be read" in one.problem


def test_an_address_that_is_not_aligned():
    assert "not aligned" in read(at=AT + 4).problem


def test_another_releases_shape_is_refused_by_its_end():
    layout = layout_of("2.28.9")
    memory = Memory().put(AT, block(layout_of(NEW).row) + bytes(8000))
    assert "endMagic" in read_communicator(memory.read, AT, "a test", [layout]).problem


def test_the_layout_that_fits_is_taken():
    memory = Memory().put(AT, block(rows_for(OLD)[1]) + bytes(64))
    both = [Layout(row, f"size {row.size}") for row in rows_for(OLD)]
    assert read_communicator(memory.read, AT, "a test", both).layout == "size 16288"


def test_without_a_layout():
    assert read_communicator(Memory().read, AT, "a test", []).problem == "the offsets of its members are not known"


def test_it_can_be_saved():
    one = read(OLD)
    assert decode(Communicator, encode(one)) == one


# --- which release ---


def elf(folder, name, banner):
    """An ELF file with nothing but a .rodata."""
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    names = b"\0.rodata\0"
    rodata, table = 64 + len(names), 64 + len(names) + len(banner)
    header[40:48] = table.to_bytes(8, "little")
    header[58:64] = b"\x40\0" + (2).to_bytes(2, "little") + b"\0\0"

    def section(name, offset, size):
        return (
            name.to_bytes(4, "little") + bytes(20) + offset.to_bytes(8, "little") + size.to_bytes(8, "little")
        ).ljust(64, b"\0")

    path = folder / name
    path.write_bytes(bytes(header) + names + banner + section(0, 64, len(names)) + section(1, rodata, len(banner)))
    return path


def found_in(path, row=None):
    nccl_library._known.clear()
    memory = parse_maps(f"7f0000000000-7f0000001000 r-xp 00000000 08:01 42 {path}\n")
    return layouts_of(memory, lambda path: path, lambda library: row)


def test_the_release_by_the_words_in_the_file(tmp_path):
    found = found_in(elf(tmp_path, "libnccl.so.2", b"..NCCL version 2.27.5+cuda12.9\0"))
    assert [layout.name for layout in found.layouts] == ["offsets of NCCL 2.27.3-2.27.7"]
    assert not found.problems


def test_debug_information_comes_first(tmp_path):
    row = rows_for("2.26.2")[0]
    found = found_in(elf(tmp_path, "libnccl.so.2", b"NCCL version 2.27.5+cuda12.9\0"), row)
    assert [layout.row.size for layout in found.layouts] == [506752, 1080320]


def test_the_release_by_the_name_of_the_file(tmp_path):
    assert found_in(elf(tmp_path, "libnccl.so.2.29.7", b"..")).libraries[0].release == "2.29.7"


def test_nccl_inside_torch(tmp_path):
    found = found_in(elf(tmp_path, "libtorch_cuda.so", b"NCCL version 2.28.9+cuda12.8\0"))
    assert [layout.name for layout in found.layouts] == ["offsets of NCCL 2.28.7-2.28.9"]


@pytest.mark.parametrize(
    ("banner", "said"),
    [
        (b"NCCL version 2.33.1+cuda13\0", "libnccl.so.2 (NCCL 2.33.1) has no debug information, and the offsets of"),
        (b"nothing here", "libnccl.so.2 has no debug information and does not say which release"),
    ],
)
def test_a_release_that_is_not_known_is_said_in_one_line(tmp_path, banner, said):
    found = found_in(elf(tmp_path, "libnccl.so.2", banner))
    assert not found.layouts
    (problem,) = found.problems
    assert problem.startswith(said)
    assert problem.endswith("its communicators cannot be read")


def test_a_library_that_is_not_here():
    memory = parse_maps("7f0000000000-7f0000001000 r-xp 00000000 08:01 42 /lib/libnccl.so.2\n")
    found = layouts_of(memory, lambda path: None, lambda library: None)
    assert found.problems == ("libnccl.so.2 is not here: communicators cannot be read without it",)


def test_damaged_and_absent_libraries(tmp_path):
    broken = tmp_path / "libnccl.so.2"
    broken.write_bytes(b"\x7fELF\x02\x01" + b"\xff" * 58)
    assert found_in(broken).libraries[0].release is None
    assert found_in(tmp_path / "gone" / "libnccl.so.2").problems
    assert found_in("/lib/libm.so.6") == ((), (), ())


# --- the search ---


def whole(mapping):
    yield mapping.start, mapping.end - mapping.start


def search(memory, *mappings, release=NEW):
    return Search(memory_map(*mappings), layouts(release), memory.read, memory.read_many, whole)


@pytest.fixture
def heap():
    """A communicator in a heap of 2 MiB, and the memory that it lies in."""
    data = bytearray(2 << 20)
    start = AT - HEAP
    one = block(layout_of(NEW).row)
    data[start : start + len(one)] = one
    return Memory().put(HEAP, bytes(data)), mapped(HEAP, len(data))


def test_by_a_pointer_on_a_stack(heap):
    memory, mapping = heap
    found = search(memory, mapping)
    found.from_words([1, AT, AT + 8, HEAP, 0xFFFF_FFFF_FFFF_FFFF])
    (one,) = found.found
    assert (one.address, one.origin, one.hash) == (AT, "a pointer on a stack", HASH)


def test_by_a_pointer_in_an_object_that_a_stack_leads_to(heap):
    memory, mapping = heap
    there = mapped(HEAP - 0x10000, 0x10000)
    memory.put(there.start, bytes(0x2008) + AT.to_bytes(8, "little") + bytes(0xDFF0))
    found = search(memory, there, mapping)
    found.from_words([there.start + 0x1F00])
    assert [(one.address, one.origin) for one in found.found] == [(AT, "a pointer in an object that a stack leads to")]


def test_by_the_arguments_of_frames(heap):
    memory, mapping = heap
    found = search(memory, mapping)
    calls = stack(
        frame("ncclAllReduce@libnccl.so.2", comm=AT),
        frame("MPI_Allreduce@libmpi.so", comm=0x99),
        frame("ncclAllGather@libnccl.so.2", **{"comm": AT + 64, "comm->rank": 3}),
    )
    found.from_frames([calls])
    good, bad = found.found
    assert good.origin == "comm of ncclAllReduce"
    assert "no communicator" in bad.problem
    assert addresses_of([calls]) == {AT: "comm of ncclAllReduce", AT + 64: "comm of ncclAllGather"}


def test_pointers_to_devices_are_not_followed():
    device, file = mapped(HEAP, PAGE, path="/dev/nvidia-uvm"), mapped(HEAP + PAGE, PAGE, "rw-s", "/data", 7)
    memory = Memory().put(HEAP, MAGIC.to_bytes(8, "little") * 1024)
    found = search(memory, device, file)
    found.from_words([HEAP, HEAP + PAGE])
    found.by_scan(Budget())
    assert not memory.asked
    assert host_only(memory.read, memory_map(device))(HEAP, 8) is None
    assert not memory.asked


def test_a_second_read_shows_what_moved(heap):
    memory, mapping = heap
    found = search(memory, mapping)
    found.from_words([AT])
    found.again()
    assert found.found[0].moved is False
    memory.put(HEAP, memory.pieces[HEAP][: AT - HEAP] + block(layout_of(NEW).row, seqNumber=(0, 0, 3, 0, 5)))
    found.again()
    assert found.found[0].moved is True
    memory.put(HEAP, bytes(2 << 20))
    found.again()
    assert not found.found[0].readable


# --- the scan ---


def test_the_scan_finds_it_whatever_lies_before(heap):
    memory, mapping = heap
    data = bytearray(memory.pieces[HEAP])
    data[AT - HEAP - 6 : AT - HEAP] = MAGIC.to_bytes(8, "little")[:6]  # looks like a begin, and is not aligned
    memory.put(HEAP, bytes(data))
    result = scan([mapping], whole, memory.read, [layout_of(NEW)], Budget())
    assert [one.address for one in result.communicators] == [AT]
    assert (result.problem, result.scanned) == (None, 2 << 20)


def test_the_scan_keeps_to_its_budget(heap):
    memory, mapping = heap
    for budget, said in ((Budget(bytes=1 << 20), "GiB"), (Budget(seconds=-1), "limit of -1 s")):
        memory.asked.clear()
        result = scan([mapping], whole, memory.read, [layout_of(NEW)], budget)
        assert said in result.problem
        assert not memory.asked


def test_memory_full_of_magic_words_ends_the_scan():
    data = MAGIC.to_bytes(8, "little") * (BLOCK // 8)
    memory = Memory().put(HEAP, data * 2)
    result = scan([mapped(HEAP, 2 * BLOCK)], whole, memory.read, [layout_of(NEW)], Budget())
    assert result.communicators == ()
    assert "look like the start" in result.problem


def test_releases_without_marks_cannot_be_scanned_for():
    memory = Memory().put(HEAP, bytes(PAGE))
    found = search(memory, mapped(HEAP, PAGE), release=ANCIENT)
    found.by_scan(Budget())
    assert not memory.asked
    assert "does not mark its communicators" in found.notes[0]


def test_releases_without_marks_are_read_where_frames_name_them():
    row = rows_for(ANCIENT)[0]
    memory = Memory().put(HEAP, bytes(64)).put(AT, block(row))
    found = search(memory, mapped(HEAP, 2 << 20), release=ANCIENT)
    found.from_frames([stack(frame("ncclAllReduce@libnccl.so.2", comm=AT))])
    assert found.hashes == {HASH}


def test_which_memory_is_scanned():
    heap, anonymous_big = mapped(HEAP, PAGE, path="[heap]"), mapped(HEAP + PAGE, 9 * PAGE, path="[anon:arena]")
    left_alone = [
        mapped(HEAP + 20 * PAGE, PAGE, path="/dev/nvidia0"),
        mapped(HEAP + 21 * PAGE, PAGE, "rw-s", "/dev/shm/x", 9),
        mapped(HEAP + 22 * PAGE, PAGE, "---p"),
        mapped(HEAP + 23 * PAGE, PAGE, "r--p"),
        mapped(HEAP + 24 * PAGE, PAGE, path="[stack]"),
        mapped(HEAP + 25 * PAGE, PAGE, "rw-p", "/lib/libc.so.6", 5),
    ]
    assert anonymous([anonymous_big, *left_alone, heap]) == [heap, anonymous_big]


def test_only_pages_in_memory_are_read():
    """What was reserved and never touched stays so: the kernel's own list of pages says the same before and after."""
    room = mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    room[40 << 20] = 1
    # The kernel may join it with a neighbour: of that one other pages may be in memory.
    where = mapped(ctypes.addressof(ctypes.c_char.from_buffer(room)), 64 << 20)
    resident = resident_of(os.getpid())
    before = sum(size for _, size in resident(where))
    assert 0 < before < 48 << 20
    scan([where], resident, ProcessMemory(os.getpid()).read, [layout_of(NEW)], Budget())
    assert sum(size for _, size in resident(where)) == before
    room.close()


def test_a_process_that_is_gone_has_nothing_to_scan():
    assert list(resident_of(2**22 + 1)(mapped(HEAP, PAGE))) == []


def test_only_ranks_that_lack_something_are_scanned(heap):
    memory, mapping = heap
    knows, lacks = search(memory, mapping), search(memory, mapping)
    knows.from_words([AT])
    scan_where_some_are_missing([knows, lacks], Budget())
    assert not knows.notes
    assert lacks.hashes == {HASH}
    assert "2 MiB scanned" in lacks.notes[0]


def test_what_a_scan_brings_to_light_is_looked_for_in_all_that_were_not_scanned():
    """The first rank has all that was known, and lacks what the scan of the second one finds."""
    one, other = HEAP + 0x10000, HEAP + 0x180000
    data = bytearray(2 << 20)
    for at, changes in ((one, {}), (other, {"commHash": HASH + 1})):
        made = block(layout_of(NEW).row, **changes)
        data[at - HEAP : at - HEAP + len(made)] = made
    memory, mapping = Memory().put(HEAP, bytes(data)), mapped(HEAP, len(data))
    knows, lacks = search(memory, mapping), search(memory, mapping)
    knows.from_words([one])
    assert knows.hashes == {HASH}
    scan_where_some_are_missing([knows, lacks], Budget())
    assert knows.hashes == lacks.hashes == {HASH, HASH + 1}
    assert len(knows.notes) == len(lacks.notes) == 1  # each once


def test_no_time_is_left_for_those_that_come_later(heap):
    memory, mapping = heap
    searches = [search(memory, mapping) for _ in range(3)]
    scan_where_some_are_missing(searches, Budget(seconds=0.0))
    assert [len(one.notes) for one in searches] == [1, 1, 1]
    assert all("limit of 0 s" in one.notes[0] for one in searches)
