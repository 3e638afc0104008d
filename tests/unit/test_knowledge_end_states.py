"""Every state at which a wait chain can end is explained."""

import json

import pytest

from gdbext.cli import main
from gdbext.commands.explain import LABELS, explain
from gdbext.knowledge.causes.end_states import END_STATES
from gdbext.knowledge.causes.wait_causes import CAUSES
from gdbext.model.waits import STATES
from gdbext.render import Style, render


def test_each_state_has_one_row():
    assert [row.state for row in END_STATES] == list(STATES)


def test_rows_of_causes_name_known_states():
    assert {state for row in CAUSES for state in row.states} <= set(STATES)


@pytest.mark.parametrize("state", STATES)
def test_it_says_how_it_is_recognised_and_what_to_do(state):
    one = explain(state)
    text = "\n".join(render(one, Style(width=100)))
    assert state in LABELS and one.sort == "state"
    assert text.startswith(f"{state} (state)\n  {STATES[state]}")
    assert "How it is recognised" in text and "What to do\n  1. " in text
    assert all(sign.source for sign in one.signs)
    own = next(row.causes for row in END_STATES if row.state == state)
    assert set(one.related) == {*own, *(row.cause for row in CAUSES if state in row.states)}


def test_the_list_has_them_as_text_and_json(capsys):
    assert main.main(["explain", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["states"] == STATES
    assert main.main(["explain"]) == 0
    assert "States at the end of a wait chain" in capsys.readouterr().out
