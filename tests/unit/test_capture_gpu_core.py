"""GPU cores made here: the sections of the public header, and what can be wrong with a file."""

import struct

import pytest

from gdbext.capture.elf.layout import EM_CUDA
from gdbext.capture.gpu_cores.gpu_core import GpuCore
from gdbext.knowledge.runtimes.gpu_core_format import GLOBAL_MEMORY
from gdbext.model.errors import GdbextError
from tests.inferiors.gpu_core import gpu_core

DATA = bytes(range(256)) * 32
BASE = 0x7F0000000000


@pytest.fixture
def made(tmp_path):
    def write(content):
        path = tmp_path / "core.nvcudmp"
        path.write_bytes(content)
        return str(path)

    return write


def test_memory_in_one_piece_and_over_two(made):
    core = GpuCore.open(made(gpu_core({BASE + 8192: DATA, BASE: DATA})))
    assert core.read(BASE, 8192) == DATA
    assert core.read(BASE + 8000, 400) == DATA[8000:] + DATA[:208]
    assert core.read(BASE + 16000, 400) is None
    assert core.read(BASE - 1, 2) is None
    assert core.read(0, 1) is None
    assert core.read(BASE, 1 << 60) is None


def test_a_file_with_more_sections_than_the_header_can_say(made):
    pieces = {BASE + 8192: DATA, BASE: DATA}
    assert GpuCore.open(made(gpu_core(pieces, numbers_in_first=True))).read(BASE + 8192, 4) == DATA[:4]


WHOLE = gpu_core({BASE: DATA})
SECTIONS_AT = struct.unpack_from("<Q", WHOLE, 40)[0]


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "it is empty"),
        (b"\x7fELF\x02\x01", "not a 64-bit ELF file"),
        (b"hello world, this is no core", "not a 64-bit ELF file"),
        (b"\x1f\x8b" + WHOLE, "gunzip"),
        (WHOLE[:18] + struct.pack("<H", 62) + WHOLE[20:], "a core file of a host process (ELF machine 62"),
        (WHOLE[:16] + struct.pack("<H", 2) + WHOLE[18:], "an ELF file, but not a core file"),
        (gpu_core({}), "holds no global memory: it was made with CUDA_COREDUMP_GENERATION_FLAGS=skip_global_memory"),
        (gpu_core({BASE: DATA}, claims=1 << 40), "cut short"),
        (gpu_core({BASE: DATA}, claims=(1 << 64) - 1), "cut short"),
        (WHOLE[:-1], "cut"),
        (WHOLE[: SECTIONS_AT + 70], "cut"),
        (gpu_core({BASE: DATA}, numbers_in_first=True, count=1 << 50), "damaged"),
    ],
)
def test_what_is_no_gpu_core_or_only_part_of_one(made, content, words):
    with pytest.raises(GdbextError, match=r"core\.nvcudmp: ") as error:
        GpuCore.open(made(content))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(GdbextError, match="No such file"):
        GpuCore.open(str(tmp_path / "nothing"))


def test_the_numbers_of_the_public_header():
    assert (EM_CUDA, GLOBAL_MEMORY) == (190, 0x80000002)
