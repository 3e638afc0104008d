"""Excerpts of object files: gdb says the same of a copy with them as with the whole files."""

import os
import subprocess
from contextlib import closing

import pytest

from gdbext.capture.excerpt import Excerpt, write_excerpt
from gdbext.capture.libraries import libraries_on_stacks
from gdbext.capture.stop import copy_process
from gdbext.frontend import gdbrun, request
from gdbext.model.frame_table import unpack
from tests.conftest import gdbs
from tests.inferiors.torch_job import TorchJob

pytestmark = pytest.mark.gdb


def walked(gdb, ranks, folder):
    """{lwp: [(pc, function)]} of the copies in a request."""
    budget = {"seconds": 100, "frames": 300}
    record = gdbrun.run_batch(gdb, {"schema": 1, "budget": budget, "ranks": ranks}, folder, 300)
    assert [rank["problems"] for rank in record["ranks"]] == [[]] * len(ranks)
    return {
        stack.lwp: [(frame.pc, frame.function) for frame in stack.frames]
        for rank in record["ranks"]
        for stack in unpack(record["frames"], rank["threads"])
    }


@pytest.mark.torch
def test_frames_and_names_of_torch_ranks_are_the_same(tmp_path):
    with TorchJob(2) as job:
        copies = [copy_process(pid) for pid in job.pids]
        ranks, problems = request.ranks_of(copies, tmp_path)
        assert problems == [[], []]
        replaced = [file for rank in ranks for file in rank["files"] if "excerpt" in file["path"]]
        assert len(replaced) >= 4, "libtorch_cpu and libtorch_python of two ranks"
        short = walked(gdbs()[-1], ranks, tmp_path)
        for rank, copy in zip(ranks, copies):
            rank["files"] = [{"path": file.opens_as, "bias": file.bias} for file in libraries_on_stacks(copy)]
        whole = walked(gdbs()[-1], ranks, tmp_path)
    assert len(whole) > 100
    assert short == whole


def compiled(folder, *flags):
    """A library with more symbols than are worth reading whole."""
    source = folder / "many.c"
    names = (f"function_with_a_rather_long_name_{number}" for number in range(30000))
    source.write_text("\n".join(f"int {name}(int x) {{ return x + 1; }}" for name in names))
    library = folder / "libmany.so"
    subprocess.run(["gcc", "-O0", "-shared", "-fPIC", *flags, "-o", library, source], check=True)
    return str(library)


def worth_it(path):
    with closing(Excerpt(path)) as one:
        return one.worth_it


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


def test_damaged_files_are_declined(tmp_path):
    library = compiled(tmp_path)
    with open(library, "rb") as file:
        data = file.read()
    damaged = tmp_path / "damaged.so"
    for size in (0, 10, 64, 4096, len(data) // 2, len(data) - 100):
        damaged.write_bytes(data[:size])
        assert not write_excerpt(str(damaged), [4096], str(tmp_path / "none"))
    assert not write_excerpt("/no/such/file", [1], str(tmp_path / "none"))
