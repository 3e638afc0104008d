"""gdb asks for every value that it prints: the kind of its type decides, then the type's name, and the reader of such
values is loaded with the first of them."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import List, Sequence

import gdb
import gdb.printing

_KNOWN = "gdbext.pretty_printers.known_types"


class Lookup(gdb.printing.PrettyPrinter):
    """Printers of one module. Each group of types has a sub-printer, which can be disabled by its name."""

    def __init__(self, name: str, kinds: Sequence[int], module: str) -> None:
        self.name, self.enabled = name, True  # the base would want the groups, which are rows that are not loaded yet
        self._kinds, self._module = kinds, module

    @cached_property
    def subprinters(self) -> List[gdb.printing.SubPrettyPrinter]:
        return [gdb.printing.SubPrettyPrinter(group) for group in import_module(_KNOWN).GROUPS[self.name]]

    def __call__(self, value: gdb.Value) -> object:
        kind = value.type.strip_typedefs()
        group = import_module(_KNOWN).GROUP_OF[self.name](value, kind) if kind.code in self._kinds else None
        enabled = group is not None and any(one.enabled for one in self.subprinters if one.name == group)
        return import_module(self._module).Printer(value) if enabled else None


def register() -> None:
    """Add the printers to gdb; `info pretty-printer` lists them. The second time it does nothing."""
    known = [getattr(one, "name", None) for one in gdb.pretty_printers]
    for one in (
        Lookup("gdbext", (gdb.TYPE_CODE_STRUCT,), "gdbext.pretty_printers.tensor"),
        Lookup("gdbext-streams", (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_PTR), "gdbext.pretty_printers.stream"),
    ):
        if one.name not in known:
            gdb.printing.register_pretty_printer(None, one)
