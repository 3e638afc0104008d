"""Excerpts of object files: gdb says the same of a copy with them as with the whole files."""

import os
import re
import subprocess
from contextlib import closing

import pytest

from gdbext.capture.elf.excerpt_file import Placed, write_file
from gdbext.capture.stop.copy_of_process import copy_process
from gdbext.capture.symbols.excerpt import Excerpt
from gdbext.capture.symbols.mapped_libraries import libraries_on_stacks
from gdbext.collect.gdb_runs import batch_runs, request, symbol_files
from gdbext.model.snapshot_files.frame_table import unpack
from gdbext.safe_open.kept_open_files import Shelf
from tests.conftest import gdbs
from tests.excerpts import compiled, opened, parts_of, whole
from tests.inferiors import size_build
from tests.inferiors.torch_job import TorchJob

pytestmark = pytest.mark.gdb


def walked(gdb, ranks, folder):
    """{lwp: [(pc, function, module, line)]} of the copies in a request."""
    budget = {"seconds": 280, "frames": 300}  # its time is not what is tested
    return named(batch_runs.run_batch(gdb, {"schema": 1, "budget": budget, "ranks": ranks}, folder, 300))


def named(record):
    assert not any(rank["problems"] for rank in record["ranks"])
    return {
        stack.lwp: [(frame.pc, frame.function, frame.module, frame.line) for frame in stack.frames]
        for rank in record["ranks"]
        for stack in unpack(record["frames"], rank["threads"])
    }


@pytest.fixture
def shelf():
    return Shelf()


def with_whole_files(ranks, copies, shelf):
    return [{**rank, **whole(copy, libraries_on_stacks(copy, None, shelf))} for rank, copy in zip(ranks, copies)]


@pytest.mark.torch
def test_frames_and_names_of_torch_ranks_are_the_same(tmp_path, monkeypatch, shelf):
    """The first rank with an excerpt for each large library, the second one with one for all that can be in it."""
    with TorchJob(2) as job:
        copies = [copy_process(pid) for pid in job.pids]
        ranks = []
        for number, (copy, many) in enumerate(zip(copies, (symbol_files.MANY, 1))):
            monkeypatch.setattr(symbol_files, "MANY", many)
            folder = tmp_path / str(number)
            folder.mkdir()
            (rank,), problems = request.ranks_of([copy], folder, shelf)
            assert problems == [[]]
            ranks.append({**rank, "index": number})
        replaced = [[file["path"] for file in rank["files"] if "excerpt" in file["path"]] for rank in ranks]
        assert len(replaced[0]) >= 2, "libtorch_cpu and libtorch_python"
        assert len(replaced[1]) == 1 and len(ranks[1]["files"]) < len(ranks[0]["files"])
        short = walked(gdbs()[-1], ranks, tmp_path)
        long = walked(gdbs()[-1], with_whole_files(ranks, copies, shelf), tmp_path)
    assert len(long) > 100
    assert short == long


VARIANTS = {  # flags of a library -> whether gdb gets it whole
    "plain": ((), False),
    "stripped": (("-s",), False),
    "optimised": (("-O2", "-fno-omit-frame-pointer"), False),
    "packed": (("-Wl,-z,noseparate-code", "-Wl,--hash-style=sysv"), False),
    "elsewhere": (("-Wl,-Ttext-segment=0x40000000",), False),
    "debug": (("-g",), True),
    "no-unwind-entries": (("-fno-asynchronous-unwind-tables",), True),
    "debug-apart": (("-g",), True),
}


def test_many_libraries_become_one_file_where_gdb_says_the_same(tmp_path, monkeypatch, turn_gdb, shelf):
    monkeypatch.setattr(symbol_files, "MANY", 2)
    size_build.build(tmp_path, len(VARIANTS))
    for number, (flags, _) in enumerate(VARIANTS.values()):
        argv = ["gcc", "-O0", "-shared", "-fPIC", *flags, "-o", tmp_path / f"lib{number}.so", tmp_path / "library.c"]
        subprocess.run(argv, check=True)
    apart = tmp_path / f"lib{len(VARIANTS) - 1}.so"
    subprocess.run(["objcopy", "--only-keep-debug", apart, f"{apart}.debug"], check=True)
    subprocess.run(["objcopy", "--strip-debug", f"--add-gnu-debuglink={apart}.debug", apart], check=True)
    with size_build.running(tmp_path, len(VARIANTS), 2 * len(VARIANTS)) as (pid,):
        copy = copy_process(pid)
        ranks, problems = request.ranks_of([copy], tmp_path, shelf)
        short = walked(turn_gdb, ranks, tmp_path)
        long = walked(turn_gdb, with_whole_files(ranks, [copy], shelf), tmp_path)
    assert problems == [[]]
    assert short == long
    read = [file["name"] for file in ranks[0]["files"]]
    kinds = {name: str(tmp_path / f"lib{number}.so") in read for number, name in enumerate(VARIANTS)}
    assert kinds == {name: is_whole for name, (_, is_whole) in VARIANTS.items()}
    assert any(file.get("program") for file in ranks[0]["files"]) and sum("excerpt" in path for path in read) == 1
    lines = [frame[3] for frames in short.values() for frame in frames if frame[1] == "library"]
    assert len(lines) == 2 * len(VARIANTS) and sum(line is not None for line in lines) == 4, "with debug information"


def test_no_more_of_many_files_than_gdb_can_take_are_whole(tmp_path, monkeypatch, turn_gdb, shelf):
    """The others have names: what their debug information says is left out, and told."""
    monkeypatch.setattr(symbol_files, "MANY", 2)
    monkeypatch.setattr(symbol_files, "MOST_WHOLE", 1)
    size_build.build(tmp_path, 6)
    for number in range(6):
        library = tmp_path / f"lib{number}.so"
        subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-o", library, tmp_path / "library.c"], check=True)
    with size_build.running(tmp_path, 6, 6) as (pid,):
        ranks, (notes,) = request.ranks_of([copy_process(pid)], tmp_path, shelf)
        frames = walked(turn_gdb, ranks, tmp_path).values()
    told = [note for note in notes if re.match(r"[56] files \(lib", note)]
    assert len(told) == 1 and "no lines and no arguments" in told[0], "the program or one of them is whole"
    assert [sum(frame[1] == "library" for frame in stack) for stack in frames] == [1] * 6


def worth_it(path):
    with closing(Excerpt(opened(path))) as one:
        return one.is_worthwhile


def test_only_big_files_without_debug_information_are_worth_it(tmp_path):
    library = compiled(tmp_path)
    assert worth_it(library)
    assert not worth_it("/bin/sh")
    subprocess.run(["strip", "-s", library], check=True)
    assert worth_it(library), "the dynamic symbols are still many"


def test_a_file_with_debug_information_is_read_whole(tmp_path):
    assert not worth_it(compiled(tmp_path, "-g"))


def test_symbols_and_unwind_entries_of_the_addresses_only(tmp_path):
    library, target = compiled(tmp_path), str(tmp_path / "excerpt")
    lines = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout.splitlines()
    address = {line.split()[2]: int(line.split()[0], 16) for line in lines if " T " in line}
    inside = address["function_with_a_rather_long_name_777"] + 4
    assert write_excerpt(library, [inside], target)
    assert os.path.getsize(target) < 8192
    listed = subprocess.run(["nm", target], capture_output=True, text=True, check=True).stdout
    assert listed.split()[2::3] == ["function_with_a_rather_long_name_777"]
    entries = subprocess.run(["readelf", "-wf", target], capture_output=True, text=True, check=True).stdout
    assert entries.count(" FDE ") == 1
    assert f"pc={address['function_with_a_rather_long_name_777']:016x}.." in entries


def write_excerpt(path, addresses, target):
    parts = parts_of(path, addresses)
    if parts is not None:
        write_file(target, [Placed(parts, 0)])
    return parts is not None


def test_damaged_files_are_declined(tmp_path):
    library = compiled(tmp_path)
    with open(library, "rb") as file:
        data = file.read()
    damaged = tmp_path / "damaged.so"
    for size in (0, 10, 64, 4096, len(data) // 2, len(data) - 100):
        damaged.write_bytes(data[:size])
        assert not write_excerpt(str(damaged), [4096], str(tmp_path / "none"))


def test_libraries_read_early_change_no_frame(tmp_path, turn_gdb, shelf):
    """Names that gdb cannot read among them. What it said of them is not in the answer: the request's files say it."""
    size_build.build(tmp_path, 2)
    for number in range(2):
        library = tmp_path / f"lib{number}.so"
        subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-o", library, tmp_path / "library.c"], check=True)
    with size_build.running(tmp_path, 2, 4) as (pid,):
        early = []
        ranks, _ = request.ranks_of([copy_process(pid)], tmp_path, shelf, early=early.append)
        plain = walked(turn_gdb, ranks, tmp_path)
        asked = {"schema": 1, "budget": {"seconds": 60.0, "frames": 256}, "ranks": ranks}
        with batch_runs.begin(turn_gdb, 1, tmp_path) as begun:
            for path in [*early, "/no/such/library", 'odd "name\\', "two\nlines", str(tmp_path / "library.c")]:
                batch_runs.read(begun, path)
            (record,) = batch_runs.run_batches(turn_gdb, [asked], tmp_path, 300, lambda *_: None, begun=begun)
    names = {row["path"]: os.path.basename(row["name"]) for row in ranks[0]["files"]}
    assert {"lib0.so", "lib1.so"} <= {names[path] for path in early}
    assert "program" not in {names[path] for path in early}, "gdb 13 ends when it gets one as a library first"
    assert record["problems"] == []
    assert named(record) == plain and len(plain) == 4
