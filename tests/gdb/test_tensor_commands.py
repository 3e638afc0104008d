"""llm-tensor in a real gdb: live processes, core files, several ranks, and every kind of wrong input."""

from pathlib import Path

import pytest

from tests.gdb.test_tensor_layouts import ROOT, lines, run_gdb, started
from tests.inferiors.tensor_build import program

pytestmark = pytest.mark.gdb

INIT = ROOT / "gdbext" / "init.py"
WIRING = Path(__file__).with_name("tensor_init.py")


def answers(gdb, tmp_path, before, *commands):
    """What the commands answer, and what gdb printed."""
    path = tmp_path / "answers"
    words = ", ".join(repr(command) for command in commands)
    load = [f"source {INIT}", f"source {WIRING}"]
    printed = run_gdb(gdb, *load, *before, f"python answers('{path}', {words})")
    assert path.exists(), printed
    return lines(path)


def turbomind():
    return program("tensor_turbomind.cc", "-g", "-O0", "-DERA=2")


def core_of(path, tmp_path):
    """A core file of a program at the place where its tensors are."""
    core = tmp_path / "core"
    run_gdb("gdb", *started(path, tmp_path / "truth"), f"generate-core-file {core}")
    return core


@pytest.mark.parametrize("kind", ["live", "core"])
def test_what_can_be_done_with_a_tensor(any_gdb, kind, tmp_path):
    path = turbomind()
    before = started(path, tmp_path / "truth")
    if kind == "core":
        before = [f"file {path}", f"core-file {core_of(path, tmp_path)}", "up"]
    saved = tmp_path / "plain.npy"
    found = answers(
        any_gdb,
        tmp_path,
        before,
        "p plain [1:, ::2]",
        "p turned [0]",
        "info slice",
        "stats plain",
        "hash plain",
        "hash derived",
        "hash slice",
        f"save plain {saved}",
        f"diff plain {saved}",
        "diff plain argument",
        "diff slice buffer",
        "list",
        'p map["k"]',
        "p remote",
        "p floats --dtype fp32 --shape 2,2 --strides 1,2",
        "diff plain argument --all-ranks",
    )
    part, column, info, stats, *hashes = found[:7]
    assert part["elements"] == [4, 6, 8, 10]
    assert part["shape"] == [2, 2]
    assert column["elements"] == [0, 4, 8]
    assert info["offset"] == 5
    assert info["owner"].startswith("cpu storage at 0x")
    assert (stats["minimum"], stats["maximum"], stats["mean"], stats["zeros"]) == (0, 11, 5.5, 1)
    assert hashes[0]["digest"] == hashes[1]["digest"] != hashes[2]["digest"]
    written, same, twins, other = found[7:11]
    assert written["type"] == "TensorSaved"
    assert saved.stat().st_size == 128 + 48
    assert same["compared"] == twins["compared"] == 12
    assert "differing" not in same
    assert "shapes differ" in other["problem"]
    assert {tensor["name"] for tensor in found[11]["tensors"]} >= {"plain", "slice", "map.q", "buffer", "argument"}
    assert found[12]["elements"] == [5, 6, 9, 10]
    assert "plain gdb cannot read device memory (it would show zeros)" in found[13]["unreadable"]
    assert found[14]["elements"] == [0, 2, 1, 3]
    assert "syntax error" in found[15]["unread"][0]["reason"]


def test_an_index_needs_no_blank_and_rows_need_no_comma(turn_gdb, tmp_path):
    """What the language has in brackets goes first: entries of maps and vectors, and elements behind pointers."""
    raw = "--dtype fp32 --shape 3,4"
    before = [*started(turbomind(), tmp_path / "truth"), "set $a = (unsigned long)floats"]
    lines_of = (
        "p plain[1:, ::2]", "p plain[-1]", "p plain[2][1:3]", "p plain[2] [1:3]", 'p map["k"][0, :1]', "p map[k]",
        f"p {raw} $a[0,:2]", f"p $a[1][-1:] {raw}", "stats plain[0]", "hash plain[0]", "hash plain [0]",
        f"save plain[0] {tmp_path}/row.npy", f"diff plain[0] {tmp_path}/row.npy", "diff plain[1] argument[1]",
        "diff plain[1] argument[2]", "info plain[1]", "diff plain[1:] --ranks all", "list --ranks all",
    )  # fmt: skip
    found = answers(turn_gdb, tmp_path, before, *lines_of)
    part, last, chained, spaced, entry, _ = found[:6]
    assert part["elements"] == [4, 6, 8, 10] and last["elements"] == [8, 9, 10, 11] and last["index"] == "[-1]"
    assert chained["elements"] == spaced["elements"] == [9, 10]
    assert entry["elements"] == [5]
    raw_row, raw_last, stats, *hashes = found[6:11]
    assert raw_row["elements"] == [0, 1] and raw_last["elements"] == [7]
    assert stats["maximum"] == 3 and hashes[0]["digest"] == hashes[1]["digest"]
    saved, same, rows, apart, whole, alone, listed = found[11:]
    assert saved["index"] == "[0]" and same["compared"] == rows["compared"] == 4
    assert apart["differing"] == 4 and apart["left"]["name"] == "plain[1]" and apart["right"]["name"] == "argument[2]"
    assert "[1] is an index of plain" in whole["error"]
    assert alone["index"] == "[1:]" and len(alone["groups"]) == 1
    assert "plain" in {tensor["name"] for tensor in listed["answers"][0]["answer"]["tensors"]}


def test_wrong_input_has_one_line(turn_gdb, tmp_path):
    wrong = (
        "p", "p nonsense", "p 1 +", 'p "open', "p plain [99]", "p plain [0, 0, 0]", "p plain [x]", "p $sp", "p main",
        "p plain --dtype", "p $sp --dtype nonsense --shape 1", "p $sp --dtype fp16", "p $sp --dtype fp16 --shape x",
        "p 16 --dtype fp16 --shape 2 --strides 1,2", "p $sp --dtype fp16 --shape 2 --where moon", "p map [0]",
        "stats map", "stats remote", "save plain", "save plain /nonexistent/x.npy", "save plain x.txt", "diff plain",
        "diff plain map", "diff plain /nonexistent.npy", "diff plain argument --rtol x", "list plain", "list --python",
        "p plain --ranks 7", "p plain --ranks x", "stats plain.layout_", "p 0 --as torch", "p -1 --as pyobject",
    )  # fmt: skip
    nowhere = (
        "p 16 --dtype fp32 --shape 2,2",
        "stats 16 --dtype fp32 --shape 2,2",
        "p $sp --dtype fp64 --shape 1000000000000",
        "p 0xffffffffff600000 --dtype uint8 --shape 4",
    )
    found = answers(turn_gdb, tmp_path, started(turbomind(), tmp_path / "truth"), *wrong, *nowhere)
    found, (unmapped, counted, endless, _) = found[: len(wrong)], found[len(wrong) :]
    assert "no memory is mapped there" in unmapped["unreadable"]
    assert "no memory is mapped there" in counted["error"]
    assert "elements read" in endless["problem"]
    without = [command for command, answer in zip(wrong, found) if "error" not in answer]
    assert without == []
    assert not [answer for answer in found if "\n" in answer["error"] or "Traceback" in answer["error"]]


def test_printers(any_gdb, tmp_path):
    path = program("tensor_fastertransformer.cc", "-g", "-O0", "-DRELEASE=53")
    printed = run_gdb(
        any_gdb,
        f"source {INIT}",
        f"source {WIRING}",
        f"source {WIRING}",
        *started(path, tmp_path / "truth"),
        *("p plain", "p/r plain", "p tensors", "p remote", "p nothing", "p *null", "info locals"),
        *("set print elements 3", "p plain", "disable pretty-printer global gdbext;fastertransformer", "p plain"),
        "info pretty-printer global gdbext",
    )
    shown = [line for line in printed.splitlines() if line.startswith("$")]
    assert shown[0].startswith("$1 = fp32 [2, 3] on cpu at 0x")
    assert "values = 0, 1, 2, 3, 4, 5}" in shown[0]
    assert shown[1].startswith("$2 = {where = fastertransformer::MEMORY_CPU")
    assert "[input_ids] = int32 [3] on cpu at 0x" in shown[2]
    assert "it would show zeros" in shown[3]
    assert "(null pointer)" in shown[4]
    assert shown[-2].endswith("{dtype = fp32, shape = [2, 3], where = cpu...}")  # gdb counts the children
    assert shown[-1].split(" = ", 1)[1].startswith("{where = ")
    assert "halved = fp16 [2, 2, 2] on pinned at 0x" in printed
    assert "Python Exception" not in printed
    assert printed.count("gdbext\n") == 1


def test_nothing_is_called_in_the_program(turn_gdb, tmp_path):
    """`map["a"]` and `*shared` are functions of the program, which gdb would call."""
    path = program("tensor_turbomind.cc", "-g", "-O0", "-DERA=1")
    before = [*started(path, tmp_path / "truth"), "break turbomind::Tensor::Tensor", "break std::__throw_out_of_range"]
    found = answers(turn_gdb, tmp_path, before, 'p map["a"]', "p plain_of()", "p (long)stop_here()")
    assert found[0]["elements"] == list(range(12))
    assert "error" in found[1]
    assert "may-call-functions" in found[2]["error"] or "call functions" in found[2]["error"]


def test_ranks_that_agree_and_one_that_does_not(turn_gdb, tmp_path):
    """Three processes with the same tensor, one of them changed."""
    path = turbomind()
    before = ["set breakpoint pending on"]
    for number in range(3):
        before += ["add-inferior -no-connection", f"inferior {number + 1}"] if number else ["break stop_here"]
        before += [f"file {path}", f"run {tmp_path}/truth{number} > /dev/null", "up"]
    before += ["set var ((float*)floats)[7] = -1.5"]
    found = answers(turn_gdb, tmp_path, before, "diff plain --all-ranks", "stats plain --all-ranks")
    groups = found[0]["groups"]
    assert [len(group["ranks"]) for group in groups] == [2, 1]
    assert groups[1]["differs"]["first"] == [1, 3]
    assert groups[1]["differs"]["first_values"] == [7, -1.5]
    assert [answer["answer"]["minimum"] for answer in found[1]["answers"]] == [0, 0, -1.5]


def test_loading_twice_is_harmless(turn_gdb):
    printed = run_gdb(turn_gdb, *[f"source {INIT}", f"source {WIRING}"] * 2, "help llm-tensor p")
    assert "Print a tensor, or a part of it, as numpy does" in printed
