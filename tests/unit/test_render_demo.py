"""What a person reads of every hang of the demo engine: the texts, at several widths, and what holds for all of them.

The looks in gdbext/demo are recorded by `python3 -m tests.inferiors.record`; GDBEXT_REWRITE_GOLDEN=1 with this file
writes the texts anew, for review.
"""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gdbext.analysis.communicators.joined_communicators import communicator_table
from gdbext.analysis.locks.lock_report import report
from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.analysis.verdict.judge import judge
from gdbext.model.command_typed import BRIEF, FULL, USUAL, Typed
from gdbext.model.snapshot_files.codec import load_snapshot
from gdbext.render import Style, render
from gdbext.render.text.verdict.stacks import is_of_user
from tests.inferiors.scenarios import BY_NAME, SCENARIOS

DATA = Path(__file__).parents[1] / "data"
GOLDEN = DATA / "golden" / "demo"
LOOKS = Path(__file__).parents[2] / "gdbext" / "demo"
NAMES = [one.name for one in SCENARIOS]
WIDTHS = (60, 80, 120, 200, 250)
SGR = re.compile("\x1b\\[[0-9;]*m")
_DIAGNOSES = {}


def diagnosis(name):
    if name not in _DIAGNOSES:
        snapshot = load_snapshot((LOOKS / f"{name}.json").read_text("utf-8"))
        judged = judge(snapshot)
        _DIAGNOSES[name] = replace(judged, tree=merge(snapshot, judged.processes))
    return _DIAGNOSES[name]


def shown(name, width, detail=USUAL, color=False, unicode=True):
    typed = Typed(detail, "gdbext diagnose", "gdbext stacks", f"{name}.json")
    return render(diagnosis(name), Style(width, color, unicode, typed))


def answer(lines):
    return lines[len(lines) - lines[::-1].index("") :]


def golden(name):
    """The usual text at three widths, and all that is known at one."""
    parts = [(f"{width} columns", shown(name, width)) for width in (80, 120, 200)]
    parts.append(("all that is known, 120 columns", shown(name, 120, FULL)))
    return "\n".join("\n".join([f"=== {title}", "", *lines, ""]) for title, lines in parts)


@pytest.mark.parametrize("name", NAMES)
def test_looks_as_reviewed(name):
    path = GOLDEN / f"{name}.txt"
    text = golden(name)
    if os.environ.get("GDBEXT_REWRITE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def test_no_text_and_no_look_is_left_over():
    for folder, ending in ((GOLDEN, ".txt"), (LOOKS, ".json")):
        assert sorted(path.name for path in folder.iterdir()) == sorted(f"{name}{ending}" for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_is_the_one_that_the_scenario_has(name):
    verdict, scenario = diagnosis(name).verdict, BY_NAME[name]
    assert verdict.cause in (scenario.cause, *scenario.also_causes)
    ranks = {one.index: one.rank for one in diagnosis(name).snapshot.processes}
    blamed = {ranks[index] for index in verdict.culprits} | set(verdict.absent)
    assert blamed == set(scenario.culprits()) or verdict.cause in scenario.also_causes


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_whole_in_eight_lines_on_every_terminal(name):
    verdict = diagnosis(name).verdict
    for width in WIDTHS:
        for unicode in (True, False):
            lines = shown(name, width, unicode=unicode)
            last = answer(lines)
            assert len(last) <= (8 if width >= 80 else 12)
            assert all(len(line) <= width for line in lines)
            assert shown(name, width, BRIEF, unicode=unicode) == last
            assert answer(shown(name, width, FULL, unicode=unicode))[:-1] == last[:-1], "all but what to type next"
            assert [SGR.sub("", line) for line in shown(name, width, color=True, unicode=unicode)] == lines
            assert last[0].startswith(f"{verdict.cause} ({verdict.confidence} confidence): ")
            assert f"diagnose -v {name}.json" in last[-1] or width < 80
            titles = {line[2:10].strip() for line in last if line.startswith("  ")}
            assert "pause" in titles
            assert ("suspect" in titles) == bool(verdict.culprits or verdict.absent)
            assert ("chain" in titles) == bool(verdict.chain)
            assert ("do" in titles) == bool(verdict.remedies)


@pytest.mark.parametrize("name", NAMES)
def test_every_source_line_of_a_culprit_is_there(name):
    found = diagnosis(name)
    decisive = {one.index: one.wait.thread for one in found.processes}
    for index in found.verdict.culprits:
        process = found.snapshot.processes[index]
        thread = next((one for one in process.threads if one.id == decisive[index]), None)
        own = [frame for frame in (thread.frames if thread else ()) if is_of_user(frame)]
        lines = shown(name, 80)
        for frame in own:
            place = f"{frame.file.rpartition('/')[2]}:{frame.line}"
            assert any(line.startswith("  #") and line.endswith(f"  {place}") for line in lines), place


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_locks_and_communicators_end_in_eight_lines_too(name, width):
    found = diagnosis(name)
    typed = Typed(USUAL, "gdbext locks", "", f"{name}.json")
    for model in (report(found), communicator_table(found.snapshot.processes)):
        for style in (Style(width, typed=typed), Style(width, unicode=False, typed=typed)):
            lines = render(model, style)
            last = answer(lines) if "" in lines else lines
            assert all(len(line) <= width for line in lines)
            assert len(last) <= (8 if width >= 80 else 12)
            assert render(model, replace(style, typed=replace(typed, detail=BRIEF))) == last
            assert last[0][0].isalnum()
