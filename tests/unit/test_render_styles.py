"""Every render function with every kind of terminal: in colour and without, Unicode and ASCII, narrow and wide."""

import importlib
import inspect
import itertools
import pkgutil
import re
import typing

import model_samples
import pytest

import gdbext.render
from gdbext.render import Style

SGR = re.compile("\x1b\\[[0-9;]*m")
WIDTHS = (60, 80, 100, 132, 200)


def functions():
    """All public functions of the room that make lines."""
    for module in pkgutil.walk_packages(gdbext.render.__path__, "gdbext.render."):
        found = importlib.import_module(module.name)
        for name, function in inspect.getmembers(found, inspect.isfunction):
            if name.endswith("_lines") and not name.startswith("_") and function.__module__ == found.__name__:
                yield function


FUNCTIONS = {f"{one.__module__.rpartition('.')[2]}.{one.__name__}": one for one in functions()}


def shown(function, sample, style):
    """The lines of what the function says that it shows, built by its annotations."""
    hints = typing.get_type_hints(function)
    wanted = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    arguments = [style if hints[one.name] is Style else sample(hints[one.name], one.name) for one in wanted]
    return function(*arguments)


@pytest.mark.parametrize("sample", ["full", "bare", "missing"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_on_every_terminal(name, sample):
    make = getattr(model_samples, sample)
    for width, unicode in itertools.product(WIDTHS, (True, False)):
        plain = shown(FUNCTIONS[name], make, Style(width, False, unicode))
        assert all(isinstance(line, str) and "\n" not in line and "\x1b" not in line for line in plain)
        assert unicode or all(line.isascii() for line in plain)
        coloured = shown(FUNCTIONS[name], make, Style(width, True, unicode))
        assert [SGR.sub("", line) for line in coloured] == plain, "colour changes nothing but the colour"


def test_all_of_them_are_found():
    assert {"verdict.diagnosis_lines", "checkup.checkup_lines", "watch.event_lines"} <= set(FUNCTIONS)
    assert len(FUNCTIONS) > 35
