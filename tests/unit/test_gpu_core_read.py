"""GPU cores to kernels, places and exceptions: real cubins in files of a writer of ours, and damaged ones."""

import gzip
import json
import struct

import pytest

from gdbext.capture.gpu_code.cubin import Cubin
from gdbext.capture.gpu_cores.gpu_core_name import host_and_pid
from gdbext.capture.gpu_cores.gpu_core_state import read_state
from gdbext.knowledge.runtimes.gpu_core_format import EXCEPTIONS, TABLES, exception_row
from gdbext.model.errors import GdbextError
from gdbext.render import PLAIN, render
from tests.front_end import gdbext
from tests.inferiors import gpu_core, gpu_cubins
from tests.inferiors.gpu_core import OLD, R525, R555, R575, core_of

pytestmark = pytest.mark.process  # ptxas makes the cubins
ILLEGAL_ADDRESS = 14


@pytest.fixture(scope="module")
def code():
    """A relocated cubin, where its kernels begin, and an instruction of line 41 in the faulting one."""
    image, entries = gpu_cubins.relocated(gpu_cubins.cubin())
    scale = entries[gpu_cubins.SCALE]
    return image, scale, entries[gpu_cubins.SPIN], line_in(image, scale, 41)


def line_in(image, entry, line):
    cubin = Cubin(image)
    return next(pc for pc in range(entry, entry + 512, 16) if cubin.frames_at(*cubin.locate(pc))[0].line == line)


@pytest.fixture
def made(tmp_path):
    def made(data, name="gpucore.node7.4711.1732190000.nvcudmp"):
        path = tmp_path / name
        path.write_bytes(data)
        return str(path)

    return made


def faulting(code, **more):
    image, scale, spin, at = code
    fault = {"entry": scale, "grid": (64, 1, 1), "block": (64, 1, 1), "sms": [3, 4], "warps": 2, "pc": at, "tid": 72}
    other = {"entry": spin, "grid": (24, 1, 1), "block": (96, 1, 1), "sms": range(10, 34), "warps": 3, "pc": spin + 48}
    return core_of(image, [{**fault, "fault": (ILLEGAL_ADDRESS, at, 0xFF)}, other], **more)


@pytest.mark.parametrize("longer", [0, 8, 56])
@pytest.mark.parametrize("driver", [OLD, R525, R555, R575])
def test_an_exception_with_its_kernel_its_line_and_its_threads(made, code, driver, longer):
    core = read_state(made(faulting(code, driver=driver, longer=longer)))
    assert (core.host, core.pid, core.problems) == ("node7", 4711, ())
    assert core.driver == ("575.57" if driver == R575 else None)
    assert core.cuda == ("12.9" if driver == R575 else None)
    assert core.flags[:1] == (("skip_nonrelocated_elf_images",) if driver == R575 else ())
    (device,) = core.devices
    assert (device.name, device.architecture, device.sm_count) == ("NVIDIA H100 80GB HBM3", "sm_90", 132)
    assert device.busy_sms == 26
    (fault,) = core.exceptions
    assert (fault.name, fault.number, fault.kernel) == ("WARP_ILLEGAL_ADDRESS", 14, "engine::scale<…>")
    assert [(one.function, one.line, one.inlined) for one in fault.frames] == [
        ("engine::store", 41, True),
        ("engine::scale<…>", 52, False),
    ]
    assert (fault.block, fault.thread, fault.sm, fault.warp) == ("(0,0,0)", "(0,0,0)", 3, 0)
    assert (fault.blocks, fault.warps, fault.lanes, fault.lane_mask) == (2, 2, 16, 0xFFFFFFFF)
    assert fault.pc_told and fault.host_tid == 72


def test_a_hang_says_which_kernel_is_on_which_sm_and_where(made, code):
    image, scale, spin, _ = code
    at = line_in(image, spin, 60)
    row = {"entry": spin, "grid": (24, 1, 1), "block": (544, 1, 1), "sms": range(24), "warps": 17, "pc": at}
    queued = {"entry": scale, "status": 1, "grid": (9, 1, 1), "parent": 1}
    core = read_state(made(core_of(image, [row, queued], tid=99), "core_1732190000_node7_12.nvcudmp"))
    first, second = core.kernels
    assert (first.name, first.status, first.sms, first.blocks, first.warps) == (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        "active",
        tuple(range(24)),
        24,
        408,
    )
    assert [(place.warps, place.frames[0].line) for place in first.places] == [(408, 60)]
    assert (second.status, second.warps, second.sms, second.parent) == ("pending", 0, (), 1)
    assert core.exceptions == () and core.host_tids == (99,)
    text = "\n".join(render(core, PLAIN))
    assert "24 of 132 SMs busy" in text and "0-23" in text and "engine.cu:60" in text
    assert "no exception is in it" in text


def test_an_exception_that_the_sm_alone_still_knows(made, code):
    image, scale, _, at = code
    core = read_state(made(core_of(image, [{"entry": scale, "sms": [7], "gone": (ILLEGAL_ADDRESS, at)}])))
    (fault,) = core.exceptions
    assert (fault.kernel, fault.sm, fault.warps, fault.block, fault.pc_told) == ("engine::scale<…>", 7, 0, "", True)
    assert fault.frames[0].line == 41


def test_device_functions_that_called_are_named(made, code):
    image, scale, spin, at = code
    calls = [line_in(image, spin, 60) + 1]
    row = {"entry": scale, "sms": [0], "pc": at, "fault": (ILLEGAL_ADDRESS, at, 1), "calls": calls}
    core = read_state(made(core_of(image, [row])))
    assert core.exceptions[0].frames[-1].function == "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def test_without_code_or_lines_it_says_what_is_missing(made, code):
    core = read_state(made(faulting(code, images=False)))
    (fault,) = core.exceptions
    assert (fault.kernel, fault.frames) == ("", ())
    assert "no relocated code" in core.problems[0]
    image, entries = gpu_cubins.relocated(gpu_cubins.cubin(lines=False))
    scale = entries[gpu_cubins.SCALE]
    row = {"entry": scale, "sms": [0], "pc": scale + 64, "fault": (ILLEGAL_ADDRESS, scale + 64, 1)}
    core = read_state(made(core_of(image, [row])))
    assert core.has_lines is False and core.exceptions[0].frames[0].function == "engine::scale<…>"
    assert "-lineinfo" in "\n".join(render(core, PLAIN))


def test_lines_that_the_driver_has_not_relocated_are_found_by_their_relocations(made, code):
    image, entries = gpu_cubins.relocated(gpu_cubins.cubin(), in_lines=False)
    at = line_in(image, entries[gpu_cubins.SCALE], 41)
    core = read_state(made(core_of(image, [{"entry": entries[gpu_cubins.SCALE], "sms": [0], "pc": at}])))
    assert core.kernels[0].places[0].frames[0].line == 41


@pytest.mark.parametrize("count", [70_000, 140_000])
def test_a_core_with_tens_of_thousands_of_sections(made, code, count):
    core = read_state(made(faulting(code, more=count)))
    assert core.exceptions[0].frames[0].line == 41 and core.problems == ()


def test_rows_of_an_unknown_size_are_told_and_the_others_are_read(made, code):
    data = bytearray(faulting(code))
    at, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    for place in range(at, at + size * count, size):
        if struct.unpack_from("<I", data, place + 4)[0] == gpu_core.TYPES["lntbl"]:
            struct.pack_into("<Q", data, place + 56, 12)
    core = read_state(made(bytes(data)))
    assert core.problems == (
        "its table of threads has rows of 12 bytes; 40 are needed: it is of a driver that this release of gdbext does"
        " not know, or damaged",
    )
    assert core.kernels[0].warps == 4 and core.kernels[0].places == ()


def test_a_compressed_core_is_unpacked(made, code):
    core = read_state(made(gzip.compress(faulting(code), 1), "core_1_n_5.nvcudmp.gz"))
    assert (core.pid, core.exceptions[0].frames[0].line) == (5, 41)
    with pytest.raises(GdbextError, match="cut short"):
        read_state(made(gzip.compress(faulting(code), 1)[:5000]))


def test_every_cut_of_a_core_is_one_line_or_a_reading(made, code):
    data = faulting(code)
    for end in range(0, len(data), 40_009):
        with pytest.raises(GdbextError) as error:
            read_state(made(data[:end]))
        assert "\n" not in str(error.value)
    assert "cut short" in str(error.value) and "copy it again" in str(error.value)


def test_sections_beyond_the_end_are_counted_and_the_others_read(made, code):
    data = bytearray(faulting(code))
    at, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    for place in range(at, at + size * count, size):
        if struct.unpack_from("<I", data, place + 4)[0] == gpu_core.TYPES["relfimg"]:
            struct.pack_into("<Q", data, place + 32, 1 << 40)
    core = read_state(made(bytes(data)))
    assert "1 of its" in core.problems[0] and "cut short" in core.problems[0]
    assert core.exceptions[0].number == ILLEGAL_ADDRESS


def test_damaged_tables_never_end_in_a_traceback(made, code):
    """Each 4 bytes of the section headers and of the tables are set to values that lie."""
    data = faulting(code)[:]
    small = core_of(code[0], [{"entry": code[1], "sms": [0], "pc": code[3], "fault": (14, code[3], 1)}])
    assert len(small) < len(data)
    for place in range(0, len(small) - 4, 997):
        for value in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF):
            broken = bytearray(small)
            struct.pack_into("<I", broken, place, value)
            try:
                render(read_state(made(bytes(broken))), PLAIN)
            except GdbextError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gpucore.gpu-node.example.org.123.1732190000.nvcudmp", ("gpu-node.example.org", 123)),
        ("core_1732190000_gpu_3_77.nvcudmp", (None, None)),
        ("core_1732190000_gpu-3_77.nvcudmp", ("gpu-3", 77)),
        ("cuda_coredump_node1.77.1732190000", ("node1", 77)),
        ("my.nvcudmp", (None, None)),
    ],
)
def test_host_and_pid_by_the_name(name, told):
    assert host_and_pid(name) == told


def test_every_exception_has_a_meaning_and_an_unknown_one_says_so():
    assert set(EXCEPTIONS) == set(range(1, 23))
    assert all(row.means and row.whose for row in EXCEPTIONS.values())
    assert exception_row(99).name == "exception 99"


def test_no_field_of_a_table_reaches_over_another():
    for table in TABLES.values():
        taken = sorted((one.offset, one.offset + one.bytes) for one in table.fields)
        assert all(end <= start for (_, end), (start, _) in zip(taken, taken[1:])), table.title
        assert all(one.offset % one.bytes == 0 for one in table.fields)


def test_the_command_reads_several_and_loses_none(made, code, tmp_path):
    good = made(faulting(code))
    bad = made(b"no core", "bad.nvcudmp")
    done = gdbext("gpucore", "read", good, bad, str(tmp_path / "absent"), "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["cores"][0]["exceptions"][0]["frames"][0]["line"] == 41
    assert len(answer["unread"]) == 2
    none = gdbext("gpucore", "read", bad)
    assert none.returncode == 4 and "not a GPU core" in none.stderr
    assert gdbext("gpucore", "read").returncode == 2
