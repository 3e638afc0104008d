"""The one table function."""

import re

import pytest

from gdbext.render.safe_text import shorten_name
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table

COLUMNS = (
    Column("rank", right=True),
    Column("title", least=8, keep=2),
    Column("state", keep=1),
    Column("empty"),
)
ROWS = (Row(("3", "VLLM::Worker_TP3_PP0", "sleeping", "")), Row(("12", "", "running", ""), "bad"))


def test_numbers_stand_right_and_silent_columns_are_left_out():
    assert table(COLUMNS, ROWS, Style(80)) == [
        "rank  title                 state",
        "----  --------------------  --------",
        "   3  VLLM::Worker_TP3_PP0  sleeping",
        "  12  -                     running",
    ]


def test_what_may_be_cut_is_cut_before_a_column_goes():
    assert table(COLUMNS, ROWS[:1], Style(28)) == [
        "rank  title         state",
        "----  ------------  --------",
        "   3  VLLM:…P3_PP0  sleeping",
    ]


def test_the_least_kept_column_goes_first_and_the_others_get_their_width_back():
    assert table(COLUMNS, ROWS[:1], Style(20)) == [
        "rank  title",
        "----  --------------",
        "   3  VLLM::…TP3_PP0",
    ]


def test_a_column_is_no_wider_than_what_is_left_after_cutting():
    column = Column("frame", least=8, cut=shorten_name)
    lines = table((column,), (Row(("engine::Layer<some::very::Long<type>>::run",)),), Style(30))
    assert lines[1:] == ["-" * 21, "engine::Layer<…>::run"]


@pytest.mark.parametrize("width", range(1, 60))
@pytest.mark.parametrize("color", [False, True])
def test_no_line_is_wider_than_asked(width, color):
    lines = table(COLUMNS, ROWS, Style(width, color))
    bare = [re.sub("\x1b\\[[0-9;]*m", "", line) for line in lines]
    assert max(map(len, bare)) <= width
    assert len(lines) == 4


def test_a_row_is_painted_cell_by_cell_so_that_columns_stay_straight():
    last = table(COLUMNS, ROWS, Style(80, color=True))[-1]
    assert last.split() == ["\x1b[1;31m12\x1b[0m", "\x1b[1;31m-\x1b[0m", "\x1b[1;31mrunning\x1b[0m"]


def test_no_rows_no_table():
    assert table(COLUMNS, (), Style()) == []


def test_text_that_looks_like_a_number_is_left_as_it_is():
    assert table((Column("title"),), (Row(("1e5",)), Row(("0x10",))), Style())[2:] == ["1e5", "0x10"]
