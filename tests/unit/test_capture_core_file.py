"""Core files: ours written and read back, what is none, what is cut, what the notes say, and where the files are."""

import os
import shutil
import struct
import subprocess
import sys
import tracemalloc

import pytest

from gdbext.capture.cores import core_copy, core_file, core_notes
from gdbext.capture.cores.core_copy import copy_core
from gdbext.capture.cores.core_file import ABSENT_INODE, CoreFile, maps_of, open_core
from gdbext.capture.cores.core_kind import looks_like_core
from gdbext.capture.cores.core_notes import NotedSignal, NotedThread, Notes, read_notes
from gdbext.capture.cores.core_objects import CoreObjects
from gdbext.capture.cores.core_process import arguments_of, environ_of, start_block
from gdbext.capture.cores.minicore import write_core
from gdbext.capture.elf.layout import PT_LOAD
from gdbext.capture.elf.object_file import segments_of
from gdbext.capture.machine import this_machine
from gdbext.capture.memory.auxiliary_vector import auxiliary
from gdbext.capture.stop.copy_of_process import copy_process
from gdbext.model.errors import GdbextError
from gdbext.snapshot_builder.core_job import crash, matching, open_cores, without_files
from tests.inferiors.capture_process import CaptureProcess, build

pytestmark = pytest.mark.process  # the program of most of these cores is compiled where no test before has done it

PAGE = 4096
BASE, STACK = 0x400000, 0x7FFF00000000
SECRET = "HF_TOKEN=hf_verysecret"


def note(kind, data, name=b"CORE\0\0\0\0"):
    return struct.pack("<III8s", 5, len(data), kind, name[:8]) + data + bytes(-len(data) % 4)


def prstatus(tid, signal, registers):
    head = struct.pack("<iiihxxQQiiii64x", signal, 0, 0, signal, 0, 0, tid, 1, tid, tid)
    return note(1, head + struct.pack(f"<{len(registers)}Q", *registers) + bytes(8))


def prpsinfo(pid, command=b"rank", arguments=b"rank --rank 5"):
    return note(3, struct.pack("<bbbbxxxxQIIiiii16s80s", 0, 82, 0, 0, 0, 0, 0, pid, 1, pid, pid, command, arguments))


def nt_file(rows):
    names = b"".join(name.encode() + b"\0" for _, _, _, name in rows)
    body = b"".join(struct.pack("<QQQ", start, end, offset // PAGE) for start, end, offset, _ in rows)
    return note(0x46494C45, struct.pack("<QQ", len(rows), PAGE) + body + names)


def start_stack(arguments, variables, auxv_of):
    """(bytes of a stack that ends at STACK + PAGE, address of argc, auxv), as create_elf_tables lays it out."""
    strings = b"".join(text.encode() + b"\0" for text in (*arguments, *variables))
    at = STACK + PAGE - len(strings)
    random = at - 32
    auxv = auxv_of(random)
    pointers, address = [], at
    for text in (*arguments, *variables):
        pointers.append(address)
        address += len(text) + 1
    words = [len(arguments), *pointers[: len(arguments)], 0, *pointers[len(arguments) :], 0]
    vector = struct.pack(f"<{len(words)}Q", *words) + auxv
    low = (random - len(vector)) & ~15
    data = bytes(low - STACK) + vector
    return (data + bytes(at - STACK - len(data)) + strings), low, auxv


def aux(random):
    return struct.pack("<16Q", 33, 0, 16, 1, 6, PAGE, 17, 100, 3, BASE + 64, 9, BASE + 0x1100, 25, random, 0, 0)


def core_bytes(notes, parts, machine=62, kind=4, elf_class=2, order=1):
    """`parts`: (address, flags, bytes in the file, bytes in memory)."""
    count = 1 + len(parts)
    offset = 64 + 56 * count
    headers = struct.pack("<IIQQQQQQ", 4, 0, offset, 0, 0, len(notes), 0, 4)
    at = offset + len(notes)
    for address, flags, data, size in parts:
        headers += struct.pack("<IIQQQQQQ", 1, flags, at, address, 0, len(data), size, 1)
        at += len(data)
    identity = b"\x7fELF" + bytes([elf_class, order, 1]) + bytes(9)
    head = struct.pack("<16sHHIQQQIHHHHHH", identity, kind, machine, 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0)
    return head + headers + notes + b"".join(data for _, _, data, _ in parts)


def notes_of(data):
    return read_notes(lambda at, size: data[at : at + size], len(data))


def registers(sp):
    row = this_machine()
    words = [0] * row.registers
    words[row.sp] = sp
    return words


@pytest.fixture
def small(tmp_path):
    """A core of one thread, rank 3 by its environment, of a program that lies in `tmp_path`."""
    program = tmp_path / "rank"
    shutil.copy(build(), program)
    environment = ["RANK=3", "WORLD_SIZE=8", SECRET, "NCCL_DEBUG=INFO"]
    stack, argc, auxv = start_stack(["python3", "serve.py"], environment, aux)
    notes = prstatus(77, 11, registers(argc - 64)) + prpsinfo(77) + note(6, auxv)
    first = program.read_bytes()[:PAGE]
    size = os.stat(program).st_size
    notes += nt_file([(BASE, BASE + PAGE, 0, str(program)), (BASE + PAGE, BASE + 2 * PAGE, PAGE, str(program))])
    parts = [
        (BASE, 4, first, PAGE),
        (BASE + PAGE, 5, b"", PAGE),
        (0x900000, 6, b"x" * 100, PAGE),
        (STACK, 6, stack, PAGE),
    ]
    path = tmp_path / "core.77"
    path.write_bytes(core_bytes(notes, parts))
    assert size > 2 * PAGE
    return path


def test_memory_is_read_where_it_is(small):
    program = (small.parent / "rank").read_bytes()
    with open_core(str(small)) as core:
        assert core.read(0x900000, 100) == b"x" * 100
        assert core.read(0x900000, 101) is None  # written to, and not dumped
        assert core.read(0x900000 + PAGE, 1) is core.read(0, 8) is core.read(-1, 8) is None
        assert core.read(BASE + PAGE, 16) is None
        objects = CoreObjects(core)
        assert core.read(BASE + PAGE - 8, 16) == program[PAGE - 8 : PAGE + 8]  # from the core, and from the file behind
        assert objects.program == str(small.parent / "rank")
        assert core.read_many([(BASE, 4), (8, 4)]) == [b"\x7fELF", None]
        kinds = [(one.start, one.permissions, one.inode, os.path.basename(one.path)) for one in core.maps()]
    assert kinds[:2] == [(BASE, "r--p", 0, "rank"), (BASE + PAGE, "r-xp", 0, "rank")]
    assert kinds[2:4] == [(0x900000, "rw-p", 0, ""), (0x900064, "rw-p", ABSENT_INODE, "")]


def test_arguments_and_environment_by_the_start_block(small):
    with open_core(str(small)) as core:
        block = start_block(core)
        assert arguments_of(core, block) == ("python3", "serve.py")
        environ = environ_of(core, CoreObjects(core), block)
        assert environ["RANK"] == "3" and environ["WORLD_SIZE"] == "8"
        copy = copy_core(core, CoreObjects(core), block)
    assert copy.state == "ok" and [thread.tid for thread in copy.threads] == [77]
    # The copy ends below the block: it holds secrets and no frames.
    assert not any(SECRET.encode() in part.data for part in copy.blocks)


def test_without_the_block_the_command_line_of_the_notes_counts(tmp_path):
    path = tmp_path / "core"
    path.write_bytes(core_bytes(prstatus(9, 0, registers(64)) + prpsinfo(9), []))
    cores = open_cores([str(path)])
    assert (cores.opened[0].process.rank, cores.opened[0].process.rank_source) == (5, "argument --rank")
    cores.close()


def test_ranks_and_what_is_kept_of_the_environment(small, tmp_path):
    twin = tmp_path / "core of another\"pod'"
    shutil.copy(small, twin)  # containers number their own: the same pid
    cores = open_cores([str(small), str(twin), str(tmp_path / "absent")])
    first, second = (one.process for one in cores.opened)
    assert (first.pid, first.world_size, second.pid) == (77, 8, 77)
    assert first.rank_source == second.rank_source == "unknown: rank 3 is claimed by 2 processes"
    assert first.host is None
    assert cores.opened[0].environment == {"NCCL_DEBUG": "INFO", "RANK": "3", "WORLD_SIZE": "8"}
    assert cores.unread == [(str(tmp_path / "absent"), f"cannot read {tmp_path / 'absent'}: No such file or directory")]
    assert cores.job.absent == ()
    cores.close()
    alone = open_cores([str(small)])
    assert [one.process.rank for one in alone.opened] == [3]
    assert alone.job.notes == ("no core of ranks 0-2,4-7 was given: nothing is known of them",)
    assert alone.job.absent == ()  # not given is not dead
    alone.close()


def test_files_by_build_id(small, tmp_path):
    program = tmp_path / "rank"
    good, other = tmp_path / "good", tmp_path / "other"
    program.rename(good)
    wrong = build("-O3")
    with open_core(str(small)) as core:
        absent = CoreObjects(core).find(str(program))
        assert absent.opens_as is None and absent.problem.startswith(f"{program} is not here (build-id ")
        shutil.copy(wrong, program)
        objects = CoreObjects(core)
        assert objects.opens(str(program)) is None
        assert f"{program} is another build (build-id " in objects.find(str(program)).problem
        assert CoreObjects(core, program=str(good)).opens(str(program)) == str(good)
        root = tmp_path / "root"
        (root / tmp_path.relative_to("/")).mkdir(parents=True)
        shutil.copy(good, f"{root}{program}")
        assert CoreObjects(core, sysroot=str(root)).opens(str(program)) == f"{root}{program}"
        other.mkdir()
        moved = other / "core"
        shutil.copy(small, moved)
    shutil.copy(good, other / "rank")
    with open_core(str(moved)) as core:
        assert CoreObjects(core).opens(str(program)) == str(other / "rank")
    (line,) = without_files([f"/lib/{number}.so is not here" for number in range(9)], ())
    assert "9 files" in line and "and 6 more" in line and "--sysroot" in line


def test_a_core_without_the_first_pages(small):
    """coredump_filter without bit 4: the build-id is not there, and that is said."""
    data = small.read_bytes()
    at = data.index(b"\x7fELF", 64)
    small.write_bytes(data[:at] + bytes(PAGE) + data[at + PAGE :])
    with open_core(str(small)) as core:
        objects = CoreObjects(core)
        found = objects.find(objects.program)
    assert found.opens_as is None and "does not match the mapped file" in found.problem
    with open(build(), "rb") as file:
        loads = [one for one in segments_of(lambda at, size: os.pread(file.fileno(), size, at)) if one.kind == PT_LOAD]
    rows = [
        (BASE + (one.address & -PAGE), one.offset & -PAGE, one.offset + one.size + PAGE - 1 & -PAGE) for one in loads
    ]
    files = nt_file([(start, start + end - offset, offset, objects.program) for start, offset, end in rows])
    small.write_bytes(core_bytes(prstatus(77, 11, registers(0)) + note(6, aux(0)) + files, []))
    with open_core(str(small)) as core:
        objects = CoreObjects(core)
        assert objects.opens(objects.program) == objects.program == objects.unchecked[0]
    assert without_files((), ["/a"])[0].startswith("taken by path and size alone")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty: the dump failed"),
        (b"some text\n", "is not a core file; give text with stacks"),
        (b"\x28\xb5\x2f\xfdxxxx", "is compressed (zstd); unpack it first: zstd -d "),
        (b"\x1f\x8bxxxxxx", "is compressed (gzip); unpack it first: gunzip -k "),
        (b"\x04\x22\x4d\x18xxxx", "is compressed (lz4); unpack it first: lz4 -d "),
        (b"\x7fELF\x02\x01\x01", "is cut short: 7 bytes; copy it again"),
        (core_bytes(b"", [], machine=183), "is from another kind of machine (aarch64); run gdbext on such a machine"),
        (core_bytes(b"", [], machine=243), "is from another kind of machine (RISC-V)"),
        (core_bytes(b"", [], elf_class=1, machine=3), "is of a 32-bit program"),
        (core_bytes(b"", [], order=2), "is of a big-endian machine"),
        (core_bytes(b"", [], kind=3), "is a program or a library, not a core file; give the program as --exe"),
    ],
)
def test_what_is_no_core(tmp_path, content, says):
    path = tmp_path / "core.1"
    path.write_bytes(content)
    with pytest.raises(GdbextError) as error:
        open_core(str(path))
    assert f"{path} {says}" in str(error.value) and "\n" not in str(error.value)
    cores = open_cores([str(path)])
    assert cores.opened == [] and cores.unread == [(str(path), str(error.value))]


def test_a_folder_and_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "core.pipe")
    for name in (tmp_path, tmp_path / "core.pipe"):
        with pytest.raises(GdbextError, match="is not a file"):
            CoreFile(str(name))


def test_cut_short_everywhere(small, tmp_path):
    """At every cut: one answer, no exception, and nothing made up."""
    data = small.read_bytes()
    cut = tmp_path / "core.cut"
    for length in [*range(64, 600, 7), *range(600, len(data), 997)]:
        cut.write_bytes(data[:length])
        with open_core(str(cut)) as core:
            assert core.cut
            copy = copy_core(core, CoreObjects(core), start_block(core))
            assert "cut short" in copy.problems[0]
            assert core.read(STACK, PAGE) is None


def test_garbage_behind_a_good_header(small, tmp_path):
    data = bytearray(small.read_bytes())
    bad = tmp_path / "core.bad"
    for seed in range(0, 900, 13):
        wild = bytearray(data)
        wild[64 + seed : 64 + seed + 8] = struct.pack("<Q", (seed * 0x9E3779B97F4A7C15) % (1 << 64))
        bad.write_bytes(wild)
        cores = open_cores([str(bad)])
        for one in cores.opened:
            assert copy_core(one.core, one.objects, one.block).pid is not None
        cores.close()


def test_our_own_copies_are_cores_too(tmp_path):
    with CaptureProcess(threads=3) as process:
        copy = copy_process(process.pid)
    path = str(tmp_path / "core")
    write_core(copy, path)
    with open_core(path) as core:
        again = copy_core(core, CoreObjects(core), None)
        assert {one.tid: one.registers for one in again.threads} == {one.tid: one.registers for one in copy.threads}
        assert auxiliary(core.notes.auxv) == auxiliary(copy.auxv)
    assert again.threads[0].tid == process.pid
    assert {one.path for one in maps_of(path) if one.is_file} == {one.path for one in copy.maps if one.is_file}


def test_recognised_by_content_and_by_name(small, tmp_path):
    text, packed, empty = tmp_path / "core.txt", tmp_path / "core.zst", tmp_path / "core.5"
    text.write_text("#0 main ()\n")
    packed.write_bytes(b"\x28\xb5\x2f\xfd")
    empty.touch()
    (tmp_path / "log.gz").write_bytes(b"\x1f\x8b")
    assert [looks_like_core(str(one)) for one in (small, packed, empty)] == [True] * 3
    assert [looks_like_core(str(tmp_path / name)) for name in ("core.txt", "log.gz", "core.absent")] == [False] * 3
    assert matching([f"{tmp_path}/core.*[57]"]) == (str(empty), str(small))
    assert matching(["/no/core.*"]) == ("/no/core.*",)


THREAD = NotedThread(5, 0, ())


@pytest.mark.parametrize(
    ("notes", "thread", "says"),
    [
        (Notes((NotedThread(5, 11, ()),), 4), 5, "terminated by SIGSEGV, Segmentation fault"),
        (Notes((NotedThread(5, 7, ()), THREAD), 4), 5, "terminated by SIGBUS, Bus error"),
        (Notes((THREAD,), 4, signal=NotedSignal(11, 1, address=16)), 5, "SIGSEGV, Segmentation fault at address 0x10"),
        (Notes((NotedThread(5, 6, ()),), 4, signal=NotedSignal(6, -6, sender=4)), 5, "terminated by SIGABRT, Aborted"),
        (Notes((NotedThread(5, 6, ()),), 4, signal=NotedSignal(6, 0, sender=99)), None, "sent by process 99"),
        (Notes((NotedThread(5, 19, ()),), 4), None, ""),
        (Notes((NotedThread(5, 3, ()),), 4), None, ""),
        (Notes(), None, ""),
    ],
)
def test_a_crash_and_a_dump_on_request(notes, thread, says):
    found, text = crash(notes)
    assert found == thread and says in text and bool(says) == bool(text)


def test_notes_of_nothing():
    for data in (b"", b"\0" * 11, b"\xff" * 64, note(1, b"short"), note(3, b"short"), note(0x53494749, b"")):
        assert notes_of(data).threads == ()


def test_of_very_many_threads_the_first_are_read_and_the_main_one(tmp_path):
    """A core of 100,000 threads: time and memory are those of the ones that are kept, all are counted."""
    registers = [1 << 40 | number for number in range(27)]
    threads = [
        prstatus(1000 + number, 0, registers) + note(514, bytes(64), b"LINUX\0\0\0") for number in range(100_000)
    ]
    path = tmp_path / "core.100999"
    path.write_bytes(core_bytes(prpsinfo(100_999) + b"".join(threads) + note(6, aux(7)), [(STACK, 6, b"x", PAGE)]))
    del threads
    tracemalloc.start()
    try:
        with open_core(str(path)) as core:
            used = tracemalloc.get_traced_memory()[1]
            copy = copy_core(core, CoreObjects(core), None)
    finally:
        tracemalloc.stop()
    assert [thread.tid for thread in core.notes.threads] == [*range(1000, 5096), 100_999]
    assert core.notes.count == 100_000 and core.notes.auxv == aux(7), "what stands behind the threads is read, too"
    assert copy.threads[0].tid == 100_999 and "only 4097 of 100000 threads were read" in copy.problems
    assert used < 16 << 20, f"{used >> 20} MiB"


def test_pieces_and_notes_without_an_end_are_counted_and_left(tmp_path, monkeypatch):
    monkeypatch.setattr(core_file, "MOST_PARTS", 3)
    monkeypatch.setattr(core_copy, "MOST_PARTS", 3)
    monkeypatch.setattr(core_notes, "_MOST_NOTES", 5)
    parts = [(STACK + number * PAGE, 6, b"x", PAGE) for number in range(9)]
    notes = b"".join(prstatus(77 + number, 0, registers(STACK + 8 * PAGE)) for number in range(9))
    path = tmp_path / "core.77"
    path.write_bytes(core_bytes(notes, parts))
    with open_core(str(path)) as core:
        problems = copy_core(core, CoreObjects(core), None).problems
    assert len(core.parts) == 3 and len(core.notes.threads) == 5
    assert problems[:2] == (
        "only 3 of its 9 pieces of memory were read",
        "it has more notes than gdbext reads",
    )
    assert problems[2].startswith("the stacks of 5 of 5 threads are not in the core: among those that gdbext did")


def test_names_of_files_are_as_many_as_it_says():
    """A list of files of 64 MiB of zeros is not as many names."""
    body = struct.pack("<QQ", 2, PAGE) + struct.pack("<6Q", 0, PAGE, 0, PAGE, 2 * PAGE, 0) + bytes(8 << 20)
    tracemalloc.start()
    try:
        assert len(notes_of(note(0x46494C45, body)).files) == 2
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_the_shell_says_one_line_and_four(tmp_path):
    path = tmp_path / "core.2"
    path.touch()
    done = subprocess.run([sys.executable, "-m", "gdbext", "diagnose", str(path)], capture_output=True, text=True)
    assert done.returncode == 4 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "is empty: the dump failed" in done.stderr
