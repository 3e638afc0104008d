"""The terminal that the tests type into."""

import pytest

from tests.gdb.gdbrun import Terminal

pytestmark = pytest.mark.gdb


def test_texts_that_come_in_one_go_can_be_waited_for_one_after_the_other(turn_gdb):
    with Terminal(turn_gdb, "python import os; os.write(1, b'first, second, third')") as terminal:
        assert terminal.expect("first").endswith("first")
        assert terminal.expect("second") == ", second"
        assert terminal.expect("third") == ", third"
