"""The table of the demo engine's hangs agrees with the engine and with the vocabulary. Nothing is built or started."""

import re
from pathlib import Path

import pytest

from gdbext.knowledge.labels import CAUSES, WAIT_KINDS
from tests.inferiors import demo_build
from tests.inferiors.demo import DemoJob
from tests.inferiors.scenarios import BY_NAME, SCENARIOS

ENGINE = Path(__file__).parents[1] / "inferiors" / "engine"


def test_engine_and_table_have_the_same_hangs_in_the_same_order():
    rows = re.findall(r'^    \{"([a-z-]+)", Fault::', (ENGINE / "plan.cc").read_text("utf-8"), re.MULTILINE)
    assert rows == [scenario.name for scenario in SCENARIOS]
    assert len(BY_NAME) == len(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_expectations_use_known_labels(scenario):
    assert {scenario.cause, *scenario.also_causes} <= set(CAUSES)
    assert {scenario.kind or "unknown", scenario.victim_kind, *scenario.also_kinds} <= set(WAIT_KINDS)
    # Only a process that is there has a wait and a frame.
    assert bool(scenario.kind) == (not scenario.absent and not scenario.dies)
    assert scenario.kind or not scenario.frame


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_rank_of_a_hang_is_culprit_or_victim(scenario):
    culprits, victims = scenario.culprits(2), scenario.victims(4, 2)
    assert scenario.healthy == (scenario.cause == "not-a-hang")
    assert sorted(culprits + victims) == ([] if scenario.healthy else [0, 1, 2, 3])
    assert scenario.healthy or culprits == (2,)


@pytest.mark.parametrize(
    ("hang", "options"),
    [
        ("pinned-alloc", {"wait": "forever"}),
        ("pinned-alloc", {"sync": "never"}),
        ("pinned-alloc", {"launcher": "slurm"}),
        ("pinned-alloc", {"ranks": 1}),
        ("missing-rank-crash", {"launcher": "mpirun"}),
        ("init-absent-rank", {"launcher": "mpirun"}),
        ("init-late-rank", {"culprit": 0}),
    ],
)
def test_impossible_jobs_are_refused_before_anything_starts(hang, options):
    with pytest.raises(ValueError, match=r"no such|mpirun ends|without rank 0"):
        DemoJob(hang, **options)


@pytest.mark.process
def test_the_build_is_told_as_all_that_the_demo_does(tmp_path, monkeypatch, capsys):
    """`scripts/install` and `show.say` put the same mark before a step."""
    monkeypatch.setattr(demo_build, "BUILD", tmp_path / "build")
    monkeypatch.setattr(demo_build, "_make", lambda folder: None)
    demo_build.build()
    assert capsys.readouterr().err == "· building the demo engine\n"
    demo_build.build()
    assert capsys.readouterr().err == "", "it is there"
