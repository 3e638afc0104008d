"""What is told of each scene is as it was: sentence, chain, rivals, graph. A change is made on purpose, by
`scripts/bench judges --pin`."""

import pytest

from gdbext.knowledge.causes.wait_causes import CAUSES as ROWS
from gdbext.knowledge.causes.wait_kinds import LINKS
from gdbext.knowledge.labels import CAUSES, CONFIDENCE, WAIT_KINDS
from gdbext.model.considered_hypotheses import SOURCES
from tests.unit.verdict_scenes import SCENES, TEXT, told

_, *BLOCKS = ("\n" + TEXT.read_text()).split("\n== ")
EXPECTED = {name: lines.rstrip("\n").split("\n") for name, _, lines in (block.partition("\n") for block in BLOCKS)}


@pytest.mark.parametrize("name", list(SCENES))
def test_a_scene(name):
    assert list(told(SCENES[name]())) == EXPECTED[name]


def test_every_scene_is_pinned():
    assert list(EXPECTED) == list(SCENES)


def test_the_scenes_have_every_row_source_and_confidence():
    weighed = [line.split()[1:4] for lines in EXPECTED.values() for line in lines if line.startswith("weighs ")]
    assert {row.rstrip(",") for source, row, _ in weighed if source == "graph"} == {row.id for row in ROWS}
    assert {source for source, _, _ in weighed} == set(SOURCES)
    assert {confidence.rstrip(",") for _, _, confidence in weighed} == set(CONFIDENCE)
    assert {lines[0].split(",")[0] for lines in EXPECTED.values()} <= set(CAUSES)


def test_the_scenes_have_every_link_and_most_waits():
    drawn = [line.split(": ")[-1].split(",")[0] for lines in EXPECTED.values() for line in lines if " -> " in line]
    assert set(LINKS) <= set(drawn)
    assert len(set(drawn) & set(WAIT_KINDS)) >= 15
