"""What this gdb can do, and which of its settings stand in the way."""

from __future__ import annotations

import importlib
import platform
from typing import Iterator, Tuple

import gdb

from gdbext import INSTALL, PACKAGES
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.memory import calls_allowed
from gdbext.inside_gdb.calls.target_calls import processor_problem
from gdbext.model.checkup import Point

_SETTINGS: Tuple[Tuple[str, str, str, str], ...] = (
    ("non-stop", "on", "ranks would stop one by one, and llm-break could not hold them together", "set non-stop off"),
    ("scheduler-locking", "on", "`continue` would resume one thread alone", "set scheduler-locking replay"),
    ("detach-on-fork", "off", "children that a rank forks would be held too", "set detach-on-fork on"),
)
"""Setting, the value that does harm, what it does, and the way out. Source: gdb's manual, Stopping and Starting."""


def about_points() -> Iterator[Point]:
    """gdb, its Python and packages, GPU memory, calls, settings."""
    name = "cuda-gdb" if compat.is_cuda_gdb() else "gdb"
    yield Point(name, "ok", f"{gdb.VERSION} with Python {platform.python_version()}")
    yield from _packages()
    yield _device_memory()
    yield from _calls()
    for setting, harmful, harm, remedy in _SETTINGS:
        if compat.setting_text(setting) == harmful:
            yield Point(name, "warning", f"{setting} is {harmful}: {harm}", remedy)


def _packages() -> Iterator[Point]:
    missing = []
    for package in PACKAGES:
        try:
            importlib.import_module(package)
        except (ImportError, SyntaxError) as error:
            missing.append(f"{package} ({error})")
    if missing:
        yield Point("packages", "hindrance", f"not found by gdb's Python: {', '.join(missing)}", INSTALL)
    else:
        yield Point("packages", "ok", f"{', '.join(PACKAGES)} are there")


def _calls() -> Iterator[Point]:
    problem = processor_problem()
    if problem is not None:
        text = f"{problem}: `print f()`, `return` and set llm allow-calls fail"
        yield Point("calls", "warning", text, "gdb 14 or later")


def _device_memory() -> Point:
    if compat.has_cuda_device():
        return Point("GPU memory", "ok", "this cuda-gdb reads it")
    can_call = processor_problem() is None
    if can_call and calls_allowed():
        return Point("GPU memory", "ok", "`set llm allow-calls` is on: llm-tensor copies it by calls in a running rank")
    text = "this gdb cannot read it: llm-tensor shows where a tensor is, but not its values"
    remedy = "cuda-gdb, --gpu-core FILE, or `set llm allow-calls on`" if can_call else "cuda-gdb, or --gpu-core FILE"
    return Point("GPU memory", "warning", text, remedy)
