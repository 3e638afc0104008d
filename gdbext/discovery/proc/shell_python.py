"""Which Python outside of the debugger can do work for it: the one that gdbext was installed for, and its likes."""

from __future__ import annotations

import os
import re
from typing import Iterator, List, Mapping, Optional, Tuple

import gdbext
from gdbext.discovery.proc import programs

VARIABLE = "GDBEXT_PYTHON"


def interpreters(environ: Optional[Mapping[str, str]] = None, package: Optional[str] = None) -> Tuple[str, ...]:
    """Paths of Pythons, best first: what GDBEXT_PYTHON names, the `.venv` beside a checkout, the environment that the
    package is installed in, `python3` on PATH. Each exists and can be executed; what it has installed is not looked at.
    """
    environ = os.environ if environ is None else environ
    parent = os.path.dirname(os.path.abspath(package or os.path.dirname(gdbext.__file__)))
    found: List[str] = []
    for path in _candidates(environ, parent):
        if path not in found and os.path.isfile(path) and os.access(path, os.X_OK):
            found.append(path)
    return tuple(found)


def _candidates(environ: Mapping[str, str], parent: str) -> Iterator[str]:
    named = environ.get(VARIABLE)
    if named:
        yield programs.find(os.path.expanduser(named), environ).path or named
    yield os.path.join(parent, ".venv", "bin", "python")
    installed = re.fullmatch(r"(.+)/lib(?:64)?/(python3\.\d+t?)/(?:site|dist)-packages", parent)
    if installed:
        prefix, name = installed.groups()
        yield from (os.path.join(prefix, "bin", python) for python in (name, "python3"))
    on_path = programs.find("python3", environ).path
    if on_path:
        yield on_path
