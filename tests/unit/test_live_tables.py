"""The truths of the live programs: a slip of the pen in a table would count against the verdict."""

import json
from pathlib import Path

import pytest

from tests.bench.accuracy import _ASKED_FOR, _MATRIX
from tests.front_end import gdbext
from tests.inferiors import live
from tests.inferiors.live.eighteenth_table import EIGHTEENTH
from tests.inferiors.live.eighth_table import EIGHTH
from tests.inferiors.live.eleventh_table import ELEVENTH
from tests.inferiors.live.fifteenth_table import FIFTEENTH
from tests.inferiors.live.fifth_table import FIFTH
from tests.inferiors.live.fourteenth_table import FOURTEENTH
from tests.inferiors.live.fourth_table import FOURTH
from tests.inferiors.live.nineteenth_table import NINETEENTH
from tests.inferiors.live.ninth_table import NINTH
from tests.inferiors.live.second_table import SECOND
from tests.inferiors.live.seventeenth_table import SEVENTEENTH
from tests.inferiors.live.seventh_table import SEVENTH
from tests.inferiors.live.sixteenth_table import SIXTEENTH
from tests.inferiors.live.sixth_table import SIXTH
from tests.inferiors.live.table import LIVE
from tests.inferiors.live.tenth_table import TENTH
from tests.inferiors.live.third_table import THIRD
from tests.inferiors.live.thirteenth_table import THIRTEENTH
from tests.inferiors.live.thirtieth_table import THIRTIETH
from tests.inferiors.live.thirty_first_table import THIRTY_FIRST
from tests.inferiors.live.thirty_fourth_table import THIRTY_FOURTH
from tests.inferiors.live.thirty_second_table import THIRTY_SECOND
from tests.inferiors.live.thirty_third_table import THIRTY_THIRD
from tests.inferiors.live.twelfth_table import TWELFTH
from tests.inferiors.live.twentieth_table import TWENTIETH
from tests.inferiors.live.twenty_eighth_table import TWENTY_EIGHTH
from tests.inferiors.live.twenty_fifth_table import TWENTY_FIFTH
from tests.inferiors.live.twenty_first_table import TWENTY_FIRST
from tests.inferiors.live.twenty_fourth_table import TWENTY_FOURTH
from tests.inferiors.live.twenty_ninth_table import TWENTY_NINTH
from tests.inferiors.live.twenty_second_table import TWENTY_SECOND
from tests.inferiors.live.twenty_seventh_table import TWENTY_SEVENTH
from tests.inferiors.live.twenty_sixth_table import TWENTY_SIXTH
from tests.inferiors.live.twenty_third_table import TWENTY_THIRD

SETS = {"live": LIVE, "live-2": SECOND, "live-3": THIRD, "live-4": FOURTH, "live-5": FIFTH, "live-6": SIXTH,
        "live-7": SEVENTH, "live-8": EIGHTH, "live-9": NINTH, "live-10": TENTH,
        "live-11": ELEVENTH, "live-12": TWELFTH, "live-13": THIRTEENTH, "live-14": FOURTEENTH,
        "live-15": FIFTEENTH, "live-16": SIXTEENTH, "live-17": SEVENTEENTH, "live-18": EIGHTEENTH,
        "live-19": NINETEENTH, "live-20": TWENTIETH, "live-21": TWENTY_FIRST,
        "live-22": TWENTY_SECOND, "live-23": TWENTY_THIRD, "live-24": TWENTY_FOURTH,
        "live-25": TWENTY_FIFTH, "live-26": TWENTY_SIXTH, "live-27": TWENTY_SEVENTH,
        "live-28": TWENTY_EIGHTH, "live-29": TWENTY_NINTH, "live-30": THIRTIETH,
        "live-31": THIRTY_FIRST, "live-32": THIRTY_SECOND, "live-33": THIRTY_THIRD,
        "live-34": THIRTY_FOURTH}  # fmt: skip
ROWS = [row for rows in SETS.values() for row in rows]
FOLDER = Path(live.__file__).parent


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_found_by_its_name_and_the_later_ones_by_nothing_else(name):
    assert {_MATRIX[row.family] for row in SETS[name]} == {name}
    assert (name in _ASKED_FOR) == (name != "live")


def test_causes_are_words_of_explain():
    known = set(json.loads(gdbext("explain", "--json").stdout)["causes"])
    assert {cause for row in ROWS for cause in row.causes} <= known
    assert [row.id for row in ROWS if len(set(row.causes)) < len(row.causes)] == []


def test_who_is_blamed_or_asked_has_a_role():
    for row in ROWS:
        assert {role for roles in row.culprits for role in roles} | set(row.asked) <= set(row.roles), row.id


def test_a_healthy_program_has_no_other_truth():
    for row in ROWS:
        assert not row.healthy or (len(row.causes) == 1 and not row.culprits), row.id


def test_every_program_is_in_the_file_of_its_family():
    for row in ROWS:
        texts = [path.read_text() for path in FOLDER.glob(f"{row.family}.*")]
        assert any(f'"{row.name}"' in text for text in texts), row.id


@pytest.mark.parametrize("name", list(SETS)[5:])
def test_the_latest_sets_have_twenty_hangs_and_ten_healthy_programs(name):
    assert sum(row.healthy for row in SETS[name]) == 10
    assert len({row.id for row in SETS[name]}) == len(SETS[name]) == 30
