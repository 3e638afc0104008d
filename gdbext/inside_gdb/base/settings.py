"""`set llm ...` and `show llm ...`."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Sequence, Tuple

import gdb


class Setting(NamedTuple):
    """One row: its name below `llm`, gdb's kind of parameter, the default, and what it is for."""

    name: str
    kind: int
    default: Any
    summary: str
    help: str
    choices: Tuple[str, ...] = ()


SETTINGS = (
    Setting(
        "max-pause",
        gdb.PARAM_STRING,
        "2",
        "longest time, in seconds, that reading the stacks of one rank may take",
        "gdbext reports what it could not read by then. Fractions are allowed.",
    ),
    Setting(
        "frames",
        gdb.PARAM_ZUINTEGER,
        256,
        "how many frames of each thread are read",
        "gdbext keeps the innermost frames of a longer stack.",
    ),
    Setting(
        "threads",
        gdb.PARAM_ZUINTEGER,
        4096,
        "how many threads of each rank are read",
        "The main thread and threads that do not sleep in the C library come first.",
    ),
    Setting(
        "debug",
        gdb.PARAM_BOOLEAN,
        False,
        "whether internal errors show where they happened",
        "Off: one line. On: the whole traceback.",
    ),
    Setting(
        "allow-calls",
        gdb.PARAM_BOOLEAN,
        False,
        "whether commands may call functions of the debugged process",
        "Off by default: in a hung process a call may never return.",
    ),
    Setting(
        "color",
        gdb.PARAM_ENUM,
        "auto",
        "whether output is coloured",
        "auto: as `set style enabled` says, and not when NO_COLOR is set.",
        ("auto", "on", "off"),
    ),
)


class _Parameter(gdb.Parameter):
    def __init__(self, row: Setting) -> None:
        self.set_doc = f"Set {row.summary}."
        self.show_doc = f"Show {row.summary}."
        self.__doc__ = row.help
        self._row = row
        choices = ([*row.choices],) if row.choices else ()
        super().__init__(f"llm {row.name}", gdb.COMMAND_DATA, row.kind, *choices)
        self.value = self._last = row.default

    def get_set_string(self) -> str:
        if self._row.name == "max-pause":
            try:
                if not 0 < float(self.value) < float("inf"):
                    raise ValueError
            except (TypeError, ValueError):
                wrong, self.value = self.value, self._last
                raise gdb.GdbError(f"llm max-pause is a number of seconds, not {wrong!r}") from None
        self._last = self.value
        return ""

    def get_show_string(self, shown: str) -> str:
        return f"llm {self._row.name}: {shown} ({self._row.summary})"


class _Prefix(gdb.Command):
    """`set llm` or `show llm` alone. gdb.ParameterPrefix would do it; it needs gdb 14."""

    def __init__(self, verb: str, names: Sequence[str]) -> None:
        self.__doc__ = f"{verb.capitalize()} settings of gdbext."
        self._verb, self._names = verb, names
        super().__init__(f"{verb} llm", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)

    def invoke(self, argument: str, from_tty: bool) -> None:
        if argument.strip():
            raise gdb.GdbError(f"no setting llm {argument.strip()}; `help {self._verb} llm` lists them")
        if self._verb == "set":
            raise gdb.GdbError("missing setting; `help set llm` lists them")
        for name in self._names:
            gdb.execute(f"show llm {name}")


_parameters: Dict[str, gdb.Parameter] = {}


def register() -> None:
    """Add the settings to gdb, once."""
    for verb in ("set", "show"):
        _Prefix(verb, [row.name for row in SETTINGS])
    for row in SETTINGS:
        _parameters[row.name] = _Parameter(row)


def value(name: str) -> Any:
    """The present value of a setting; `max-pause` as a float."""
    found = _parameters[name].value
    return float(found) if name == "max-pause" else found
