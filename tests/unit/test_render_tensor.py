"""What a person reads about tensors, and the same as JSON."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from gdbext.analysis.tensors.arithmetic.elements import Tolerance
from gdbext.analysis.tensors.comparing.difference import Source, difference
from gdbext.analysis.tensors.comparing.digest import digest
from gdbext.analysis.tensors.decoding.shown_values import read_values
from gdbext.analysis.tensors.whole_tensor import statistics
from gdbext.model.missing import Missing
from gdbext.model.tensor import (
    HashGroup,
    Histogram,
    RankProblem,
    RankTensor,
    RankTensors,
    TensorAgreement,
    TensorInfo,
    TensorList,
    TensorMapInfo,
    TensorSaved,
    TensorStats,
)
from gdbext.render import Style, render
from gdbext.render.json.document import dumps
from gdbext.render.text.tensors.tensor import size_text
from tests.unit.tensor_memory import tensor_of

PLAIN = Style(width=100)
DEVICE = TensorInfo(
    "weights",
    kind="ft::Tensor",
    dtype="bf16",
    shape=(3, 4),
    where="gpu 0",
    address=0x7F0000000000,
    nbytes=24,
    unreadable="on GPU 0 at 0x7f0000000000: plain gdb cannot read device memory (it would show zeros); use cuda-gdb",
)
BROKEN = TensorInfo("broken", dtype=Missing("enum value 77"), shape=Missing("optimized out"), address=0)


def half_tensor():
    whole = (np.arange(4096 * 4).reshape(4096, 4) % 1000 / 8).astype(np.float16)
    info, memory = tensor_of(whole, whole.T, name="half_tensor")
    return replace(info, nbytes=whole.nbytes, owner="view of 0x10"), memory, whole


def text(obj, style=PLAIN):
    return "\n".join(render(obj, style))


def test_the_summary_line():
    info, _, _ = half_tensor()
    assert text(info) == "half_tensor: fp16 [4, 4096] strides [1, 4] on cpu at 0x7f1234567000 (32 KiB), view of 0x10"


def test_what_is_wrong_is_said_with_its_reason():
    reasons = "dtype unknown: enum value 77; shape unknown: optimized out; where unknown: not read"
    assert text(BROKEN) == f"broken: ? [?] at nullptr: {reasons}"
    several = text(replace(BROKEN, notes=("a note",))).splitlines()
    assert several[:2] == ["broken: ? [?] at nullptr", "  ! dtype unknown: enum value 77"]
    assert "use cuda-gdb" in " ".join(text(DEVICE).split())


def test_one_reason_for_everything_is_said_once():
    gone = Missing("optimized out")
    lost = TensorInfo(
        "lost", "", "ft::Tensor", dtype=gone, shape=gone, address=gone, where=gone, problems=(gone.reason,)
    )
    assert text(lost) == "lost: optimized out (ft::Tensor)"
    row = text(TensorList("frame 1", (lost,))).splitlines()[-1]
    assert row.split()[0] == "lost" and row.endswith("optimized out")


def test_a_table_never_cuts_the_command_that_shows_values():
    why = "plain gdb cannot read device memory (it would show zeros); use cuda-gdb, or `set llm allow-calls on`"
    one = replace(DEVICE, unreadable=f"on GPU 0 at 0x7f0000000000: {why}")
    other = replace(one, name="bias", unreadable=f"on GPU 1 at 0x7f0000400000: {why}")
    meta = replace(one, name="shadow", unreadable="a meta tensor has no values")
    lines = text(TensorList("frame 1", (one, other, meta)), Style(width=90)).splitlines()
    assert [line.endswith("values: see below") for line in lines[3:6]] == [True] * 3
    below = " ".join(" ".join(lines[6:]).split())
    assert below == f"! weights and 1 more: {why} ! shadow: a meta tensor has no values"


def test_what_has_no_elements_needs_no_address():
    nowhere = Missing("null pointer")
    assert text(TensorInfo("empty", dtype="fp32", shape=(0, 3), address=nowhere)) == "empty: fp32 [0, 3]"
    assert text(TensorInfo("full", dtype="fp32", shape=(1, 3), address=nowhere)).endswith("unknown: null pointer")


def test_values_follow_the_summary():
    info, memory, whole = half_tensor()
    shown = text(read_values(info, memory.read, "[0, :5]")).splitlines()
    assert shown[0].startswith("half_tensor[0, :5]: fp16 [4, 4096]") and shown[0].endswith("-> [5]")
    assert shown[1:] == [str(whole.T[0, :5])]


def test_statistics_are_one_look():
    info, memory, whole = half_tensor()
    lines = text(statistics(info, memory.read)).splitlines()
    assert lines[1] == "  16,384 values: min 0  max 124.875  mean 62.1348  std 36.1857".replace(
        "62.1348", f"{whole.astype(float).mean():.6g}"
    ).replace("36.1857", f"{whole.astype(float).std():.6g}")
    assert "NaN 0  +Inf 0  -Inf 0  zeros 17 (0.1 %)  subnormals 0" in lines[3]
    assert len(lines) == 12 and lines[-1].lstrip().startswith("109.3 .. 124.9")


def test_the_histogram_in_unicode_and_ascii():
    info, memory = tensor_of(np.array([0, 0, 0, 0, 1, 8], np.float32))
    stats = statistics(info, memory.read)
    assert text(stats).splitlines()[-8:][:2] == ["  0 .. 1  4  ████████████████████████", "  1 .. 2  1  ██████"]
    plain = text(stats, Style(unicode=False)).splitlines()
    assert plain[-1] == "  7 .. 8  1  ######" and plain[-2] == "  6 .. 7  0"
    assert all(line.isascii() for line in plain)


def test_nan_stands_out():
    info, memory = tensor_of(np.array([[1, np.nan], [np.inf, 0]]))
    lines = text(statistics(info, memory.read), Style(color=True))
    assert "\x1b[1;31mNaN 1 (25.0 %)\x1b[0m" in lines and "first NaN at [0, 1]" in lines


def test_a_digest():
    info, memory, _ = half_tensor()
    found = digest(info, memory.read)
    assert text(found).splitlines()[1] == f"  {found.digest}  over 16,384 values"


def changed():
    info, memory, whole = half_tensor()
    other = whole.copy()
    other[5, 2] += 1
    other[9, 1] = np.nan
    right, right_memory = tensor_of(other, other.T, name="half_tensor")
    return Source(info, memory.read), Source(right, right_memory.read)


def test_a_difference():
    left, right = changed()
    lines = text(difference(left, right)).splitlines()
    assert lines[2:] == [
        "  2 of 16,384 values (<0.1 %) differ",
        "  first at [1, 9]: 4.625 and nan",
        "  largest difference 1 at [2, 5], relative 0.266667 at [2, 5]",
        "  1 value NaN on one side only",
    ]
    assert text(difference(left, left)).splitlines()[2:] == ["  same: 16,384 values"]
    close = text(difference(left, left, tolerance=Tolerance(relative=1e-3)))
    assert "same within rtol 0.001, atol 0: 16,384 values" in close
    one, other = (tensor_of(np.array([value])) for value in (1.0, 1.0 + 1e-12))
    lines = text(difference(*(Source(info, memory.read) for info, memory in (one, other))))
    assert "first at [0]: 1.0 and 1.000000000001" in lines
    assert "! shapes differ" in text(difference(left, Source(one[0], one[1].read)))


def test_who_agrees():
    left, right = changed()
    groups = (
        HashGroup((0, 1, 2, 5), "ab" * 16, left.info),
        HashGroup((3,), "cd" * 16, right.info, difference(left, right)),
    )
    found = TensorAgreement("w", groups, "[0]", (RankProblem(4, "lost"),))
    lines = text(found).splitlines()
    assert lines[0] == "w[0]: 2 different values"
    assert lines[1].startswith("  ranks 0-2,5 agree: fp16 [4, 4096]")
    assert lines[3].startswith("  rank 3 differs: ")
    assert "    first at [1, 9]: 4.625 and nan" in lines and lines[-1] == "  ! rank 4: lost"
    assert text(TensorAgreement("w", groups[:1])).startswith("w: all 4 ranks agree")
    assert text(TensorAgreement("w", ())).startswith("w: no rank could be read")


def test_tables():
    info, _, _ = half_tensor()
    shown = text(TensorMapInfo("inputs", "ft::TensorMap", (info, DEVICE, BROKEN), total=7))
    assert shown.startswith("inputs: ft::TensorMap, 7 entries\n") and "  4 more are not shown" in shown
    assert [line.split()[0] for line in shown.splitlines()[3:6]] == ["half_tensor", "weights", "broken"]
    listed = text(TensorList("frame 3", (info, DEVICE), ("args optimized out",)))
    assert listed.startswith("2 tensors in frame 3\n") and listed.endswith("! args optimized out")
    assert text([info, DEVICE]).splitlines()[2].startswith("half_tensor  fp16   [4, 4096]")
    for width in (40, 60, 80):
        assert all(len(line) <= width for line in text([info, DEVICE], Style(width=width)).splitlines())


def test_ranks_one_after_the_other():
    info, memory, _ = half_tensor()
    answers = (RankTensor(0, info), RankTensor(1, Missing("lost")), RankTensor(2, digest(info, memory.read)))
    lines = text(RankTensors("x", answers)).splitlines()
    assert lines[0].startswith("rank 0  half_tensor: fp16") and lines[1:3] == ["rank 1", "  ! lost"]


def test_a_file():
    saved = TensorSaved(DEVICE, "/tmp/x.npy", 1234567, "npy", notes=("bf16 is written as fp32, every value exactly",))
    assert text(saved).splitlines()[1] == "  written to /tmp/x.npy, 1.2 MiB"


@pytest.mark.parametrize("nbytes, said", [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (32768, "32 KiB"),
                                          (10**14, "91 TiB"), (2**70, "1048576 PiB")])  # fmt: skip
def test_sizes(nbytes, said):
    assert size_text(nbytes) == said


def test_hostile_names_do_no_harm():
    info = replace(DEVICE, name="x\x1b[31m\n" + "y" * 30_000, owner="\u202e", problems=("\x07",), dtype="\x1b]0;z")
    for line in render(info, PLAIN):
        assert line.isprintable()


def every_object():
    info, memory, _ = half_tensor()
    left, right = changed()
    whole, hole = tensor_of(np.array([[np.nan, np.inf], [-np.inf, 1 + 2j]]), holes=[(48, 64)])
    yield from (info, DEVICE, BROKEN, read_values(info, memory.read), read_values(whole, hole.read))
    yield from (statistics(info, memory.read), statistics(whole, hole.read), digest(info, memory.read))
    yield difference(left, right, tolerance=Tolerance(absolute=math.inf))
    yield TensorAgreement("w", (HashGroup((0,), "ab", info, difference(left, right)),), unread=(RankProblem(1, "x"),))
    yield from (TensorMapInfo("m", "k", (info, BROKEN)), TensorList("p", (info,)), TensorSaved(info, "p", 1, "npy"))
    yield RankTensors("x", (RankTensor(0, info), RankTensor(1, Missing("lost"))))
    yield [info, BROKEN]


def test_documents_are_strict_json():
    def refuse(constant):
        raise AssertionError(constant)

    for obj in every_object():
        assert json.loads(dumps(obj), parse_constant=refuse)["schema"] == 1
        assert render(obj, PLAIN)


def test_the_document_of_values():
    whole, memory = tensor_of(np.array([[np.nan, -np.inf], [1.5, 2]]), holes=[(24, 32)])
    found = json.loads(dumps(read_values(whole, memory.read)))
    # one page is the least that can be unreadable here
    assert found["elements"] == [None] * 4 and found["read"] == 0 and found["shape"] == [2, 2]
    whole, memory = tensor_of(np.array([[np.nan, -np.inf], [1.5, 2]]))
    assert json.loads(dumps(read_values(whole, memory.read)))["elements"] == ["NaN", "-Infinity", 1.5, 2.0]


def test_the_document_of_what_is_unknown():
    found = json.loads(dumps(BROKEN))
    assert found["dtype"] is None and found["missing"]["dtype"] == "enum value 77" and found["address"] == "0x0"


def borders(low, high):
    """The left borders of the bins as text, and the last right one."""
    stats = TensorStats(DEVICE, 8, minimum=low, maximum=high, histogram=Histogram(low, high, (1,) * 8), total=8)
    lines = [line.split() for line in text(stats).splitlines() if " .. " in line]
    return [words[0] for words in lines] + [words[2] for words in lines[-1:]]


def test_borders_of_large_numbers_are_told_apart():
    assert borders(0.0, 8.0) == ["0", "1", "2", "3", "4", "5", "6", "7", "8"]
    found = borders(2.0**62, 2.0**62 + 2**20)
    assert found[:2] == ["4611686018427387904", "4611686018427518976"] and len(set(found)) == 9
    assert borders(1.0, 1.00008)[:2] == ["1", "1.00001"]
    assert borders(2.0**62, 2.0**62 + 512) == []
    stats = TensorStats(DEVICE, 8, minimum=1.0, maximum=1.0, histogram=Histogram(2.0**62, 2.0**62, (1,) * 8), total=8)
    assert "no histogram: the values are closer together than double precision tells apart" in text(stats)
