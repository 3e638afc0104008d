"""A diagnosis as lines. Golden texts are in tests/data/golden; GDBEXT_REWRITE_GOLDEN=1 writes them anew, for review."""

import dataclasses
import os
import re
from argparse import Namespace
from pathlib import Path

import pytest
from render_samples import HOSTILE, empty, hang, healthy, never_came, poisoned, scattered

from gdbext.commands.command_for_more import in_shell
from gdbext.commands.explain import explain
from gdbext.model.command_typed import BRIEF, FULL, USUAL, Typed
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.verdict import Diagnosis, Verdict
from gdbext.model.waits import shown_kind
from gdbext.render import Style, render

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
WIDTHS = (60, 80, 100, 160)
SAMPLES = {
    "hang-8": lambda: hang(8, 3),
    "hang-1024": lambda: hang(1024, 700),
    "never-came": never_came,
    "healthy": healthy,
    "empty": empty,
    "scattered-1024": scattered,
}
LOOKS = [
    ("hang-8", Style(60)),
    ("hang-8", Style(80)),
    ("hang-8", Style(100)),
    ("hang-8", Style(160)),
    ("hang-8", Style(100, color=True)),
    ("hang-8", Style(100, unicode=False)),
    ("hang-1024", Style(100)),
    ("never-came", Style(100)),
    ("never-came", Style(80, unicode=False)),
    ("healthy", Style(100)),
    ("empty", Style(100)),
]
TYPED = Typed(USUAL, "gdbext diagnose", "gdbext stacks", "4711")
SGR = re.compile("\x1b\\[[0-9;]*m")


def plain(line):
    return SGR.sub("", line)


def golden_name(sample, style):
    return f"{sample}-{style.width}{'-color' * style.color}{'-ascii' * (not style.unicode)}.txt"


@pytest.mark.parametrize("sample, style", LOOKS, ids=[golden_name(*look) for look in LOOKS])
def test_looks_as_reviewed(sample, style):
    path = GOLDEN / golden_name(sample, style)
    text = "\n".join(render(SAMPLES[sample](), style)) + "\n"
    if os.environ.get("GDBEXT_REWRITE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def test_no_golden_text_is_left_over():
    assert {path.name for path in GOLDEN.glob("*.txt")} == {golden_name(*look) for look in LOOKS}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("unicode", [False, True])
def test_no_line_is_wider_than_asked(sample, width, color, unicode):
    lines = render(SAMPLES[sample](), Style(width, color, unicode))
    assert max(len(plain(line)) for line in lines) <= width
    if not unicode:
        assert all(line.isascii() for line in lines)
    if not color:
        assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize("sample", SAMPLES)
def test_colour_changes_no_letter(sample):
    bare, painted = (render(SAMPLES[sample](), Style(100, color)) for color in (False, True))
    assert [plain(line) for line in painted] == bare


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_finding_fits_one_screen(sample, width):
    assert len(render(SAMPLES[sample](), Style(width))) <= 50


@pytest.mark.parametrize("ranks", [1, 8, 1024])
def test_a_healthy_job_takes_few_lines(ranks):
    assert len(render(healthy(ranks), Style(100))) <= 10


def answer(lines):
    """What stands behind the last empty line."""
    return lines[len(lines) - lines[::-1].index("") :] if "" in lines else lines


def test_the_answer_comes_last_the_verdict_before_the_suspect():
    lines = answer(render(hang(8, 3), Style(100, typed=TYPED)))
    assert lines[0].startswith("implicit-sync-vs-collective (high confidence): Rank 3 allocates page-locked memory")
    assert [line[:11] for line in lines[2:]] == ["  suspect  ", "  do       ", "  pause    ", "  next     "]
    assert lines[2] == "  suspect  rank 3 (pid 4714, node17); holding up ranks 0-2,4-7"
    assert lines[4] == "  pause    up to 4.2 ms for each process"
    assert lines[5] == "  next     gdbext diagnose -v 4711 (shows the evidence, what was not read and 1 more remedy)"


@pytest.mark.parametrize("width", [80, 100, 132, 200, 250])
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("unicode", [False, True])
def test_the_answer_takes_eight_lines(sample, width, unicode):
    for detail in (BRIEF, USUAL, FULL):
        style = Style(width, unicode=unicode, typed=dataclasses.replace(TYPED, detail=detail))
        shown = render(SAMPLES[sample](), style)
        assert len(answer(shown)) <= 8
        assert (shown == answer(shown)) == (detail == BRIEF or (sample == "empty" and detail == USUAL))


def test_all_that_is_known_comes_before_the_answer_where_it_is_asked_for():
    text = "\n".join(render(hang(8, 3), Style(100, typed=Typed(FULL))))
    wanted = ["waits in", "Source lines", "Evidence", "Stacks", "What to do", "Limits of this answer", "up to 4.2 ms"]
    places = [text.index(words) for words in wanted]
    assert places == sorted(places)
    usual = "\n".join(render(hang(8, 3), Style(100)))
    assert not any(words in usual for words in wanted[2:6])


def test_the_page_is_named_where_there_is_an_option_for_it():
    found, typed = hang(8, 3), dataclasses.replace(TYPED, page="--html FILE")
    more = "  next     gdbext diagnose -v 4711 (shows the evidence, what was not read and 1 more remedy)"
    assert render(found, Style(140, typed=typed))[-1] == f"{more}; gdbext stacks 4711; --html FILE for a page"
    assert render(found, Style(120, typed=typed))[-1] == f"{more}; --html FILE for a page"
    assert render(found, Style(100, typed=typed))[-1] == more
    narrow = render(found, Style(70, typed=typed))[-1]
    assert narrow == "  next     gdbext diagnose -v 4711", "the same words at any width, or none"
    assert in_shell(Namespace(command="diagnose", inputs=["x.json"], html=None)).page == "--html FILE"
    assert in_shell(Namespace(command="diagnose", inputs=["x.json"], html="x.html")).page == ""
    assert in_shell(Namespace(command="diagnose", inputs=["x.json"])).page == ""


@pytest.mark.parametrize(
    ("options", "typed"),
    [
        ({"inputs": ["4711"]}, "4711"),
        ({"inputs": ["a b.json"]}, "'a b.json'"),
        ({"inputs": [], "engine": "vllm", "no_stop": True}, "--engine=vllm --no-stop"),
        ({"inputs": ["4711"], "save": "hang.json"}, "hang.json"),
        ({"inputs": [], "name": "$(x)"}, "--name='$(x)'"),
    ],
)
def test_what_to_type_next_is_about_the_same(options, typed):
    found = in_shell(Namespace(command="diagnose", **options))
    assert (found.command, found.about) == ("gdbext diagnose", typed)


def test_who_piped_a_text_pipes_it_again():
    found = in_shell(Namespace(command="diagnose", inputs=["-"]))
    assert (found.command, found.stacks, found.about) == ("... | gdbext diagnose", "", "")


def test_a_longer_look_that_is_needed_is_what_to_type_next():
    found = hang(8, 3)
    command = "gdbext diagnose --samples 3 --interval 10 4711"
    found = dataclasses.replace(found, verdict=dataclasses.replace(found.verdict, decided_by=command))
    lines = answer(render(found, Style(100, typed=TYPED)))
    assert lines[-1] == f"  next     {command}"
    assert not any(line.startswith("  do ") for line in lines)


def test_ranks_that_gdb_holds_are_not_said_to_have_been_let_go():
    found = hang(8, 3)
    held = tuple(dataclasses.replace(one, source="held") for one in found.snapshot.processes)
    found = dataclasses.replace(found, snapshot=dataclasses.replace(found.snapshot, processes=held))
    assert render(found, Style(100))[-1] == (
        "  pause    held by this gdb for up to 4.2 ms so far; llm-detach-all releases the ranks"
    )


def test_a_long_verdict_is_cut_behind_a_sentence():
    found = hang(8, 3)
    verdict = dataclasses.replace(found.verdict, summary="The first ends here. " + " ".join(["Word"] * 70) + ".")
    lines = answer(render(dataclasses.replace(found, verdict=verdict), Style(80, typed=TYPED)))
    assert lines[:2] == ["implicit-sync-vs-collective (high confidence): The first ends here.", lines[1]]
    assert lines[1].startswith("  suspect")
    verdict = dataclasses.replace(verdict, summary=" ".join(["word"] * 70) + " end.")
    lines = answer(render(dataclasses.replace(found, verdict=verdict), Style(80, typed=TYPED)))
    assert lines[3].endswith("word …") and len(lines) == 8


def row_of(lines, start):
    return next(line.split() for line in lines if line.strip().startswith(start))


def test_each_of_few_ranks_has_its_row_and_many_share_one():
    few = render(hang(8, 3), Style(160))
    assert row_of(few, "▶ 3")[1:4] == ["3", "4714", "pinned-host-alloc"]
    assert row_of(few, "5 ")[:3] == ["5", "4716", "nccl-group-launch"]
    many = render(hang(1024, 700), Style(160))
    assert row_of(many, "0-699,701-1023")[:2] == ["0-699,701-1023", "4711…"]
    assert sum("nccl-group-launch" in line for line in many) == 1


def test_the_row_shows_the_engines_own_frame_with_its_line():
    lines = render(hang(8, 3), Style(160))
    row = next(line for line in lines if "pinned-host-alloc" in line)
    assert "rtp_llm::BufferManager::allocate<" in row
    assert "BufferManager.cc:88" in row


def test_a_rank_without_a_process_stands_in_the_table():
    lines = render(never_came(), Style(100))
    assert row_of(lines, "3 ") == ["3", "-", "no", "process", *["-"] * 5]
    assert any(line.startswith("  suspect  rank 1, rank 3 (no process); holding up ranks 0,2;") for line in lines)


def test_equal_problems_of_many_ranks_are_told_once():
    sample = hang(64, 3)
    processes = tuple(dataclasses.replace(one, problems=("budget spent",)) for one in sample.snapshot.processes)
    snapshot = dataclasses.replace(sample.snapshot, processes=processes, problems=("gdb was ended at its deadline",))
    lines = render(dataclasses.replace(sample, snapshot=snapshot), Style(100, typed=Typed(FULL)))
    start = lines.index("Limits of this answer")
    assert lines[start + 1 : start + 3] == ["  gdb was ended at its deadline", "  ranks 0-63: budget spent"]


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("sample", ["hang-8", "never-came", "healthy", "empty"])
def test_nothing_of_a_hostile_target_reaches_the_terminal(sample, color):
    for line in render(poisoned(SAMPLES[sample]()), Style(100, color)):
        assert plain(line).isprintable(), ascii(line)
        line.encode("utf-8")
    for line in render(poisoned(SAMPLES[sample]()), Style(100, unicode=False)):
        assert line.isascii() and line.isprintable()
    assert not HOSTILE.isprintable()


def test_processes_that_nothing_is_known_of_are_told_apart():
    snapshot = JobSnapshot(
        (
            RankSnapshot(0, ()),
            RankSnapshot(1, (), pid=77, state="lost", problems=("ended while it was read",)),
        )
    )
    verdict = Verdict("unknown", "low", "Too little was read.", culprits=(0, 1), victims=(5,))
    lines = render(Diagnosis(snapshot, (), verdict), Style(100))
    assert "  suspect  process 1, pid 77; not fully read: pid 77" in lines
    assert [line.split() for line in lines if "▶" in line] == [
        ["▶", "process", "1", "-", "ok"],
        ["▶", "?", "77", "lost"],
    ]
    lines = render(Diagnosis(snapshot, (), verdict), Style(100, typed=Typed(FULL)))
    assert "  pid 77: ended while it was read" in lines


def test_a_lone_process_is_neither_numbered_nor_suspected():
    verdict = Verdict("other", "low", "It died.", culprits=(0,))

    def shown(one, *others):
        return render(Diagnosis(JobSnapshot((one, *others)), (), verdict), Style(100))

    for process, name in (
        (RankSnapshot(0, (), source="text", only=True), "process"),
        (RankSnapshot(0, (), pid=77), ""),
    ):
        lines = shown(process)
        assert "▶" not in "".join(lines) and "?" not in "".join(lines) and "process 1" not in "".join(lines)
        assert not any(line.startswith("  suspect") for line in lines) and (name in "".join(lines))
    assert "  suspect  rank 3" in shown(RankSnapshot(0, (), rank=3))
    lost = shown(RankSnapshot(0, (), pid=77, state="partial"))
    assert any("not fully read: pid 77" in line for line in lost), "what could not be read is always said"
    assert "▶ ?" in "".join(shown(RankSnapshot(0, (), pid=77), RankSnapshot(1, (), pid=78)))


def test_people_read_a_wait_as_no_more_than_it_shows():
    assert shown_kind("condvar-idle") == "wait-or-poll" and shown_kind("mutex") == "mutex"
    assert explain("wait-or-poll") == explain("condvar-idle")


def test_a_frame_number_out_of_range_is_no_frame():
    sample = healthy(1)
    judged = sample.processes[0]
    thread = dataclasses.replace(judged.threads[0], engine_frame=99)
    judged = dataclasses.replace(judged, threads=(thread,), wait=dataclasses.replace(judged.wait, frame=-1))
    lines = render(dataclasses.replace(sample, processes=(judged,)), Style(100))
    assert not any("engine frame" in line for line in lines)


def test_a_look_that_stopped_nobody_has_no_column_for_the_pause():
    look = hang(8, 3)
    assert " pause" in render(look, Style(160))[0]
    processes = tuple(dataclasses.replace(one, pause_ms=0.0, source="live") for one in look.snapshot.processes)
    unstopped = dataclasses.replace(look, snapshot=dataclasses.replace(look.snapshot, processes=processes))
    lines = render(unstopped, Style(160))
    assert "  pause    none: nothing was stopped" in lines
    assert "pause" not in lines[0] and not any("0.0 ms" in line for line in lines)
