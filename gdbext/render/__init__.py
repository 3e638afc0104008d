"""Model objects to lines of text: the only place that knows width and colour. `dumps` has the same for `--json`."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Dict, List, Mapping, Optional, Union

from gdbext.model.difference import JobDifference
from gdbext.model.errors import GdbextError
from gdbext.model.formatted import Formatted
from gdbext.model.look_origin import FromFile
from gdbext.model.page import Page
from gdbext.render.style import Style
from gdbext.render.text.notices import error_lines
from gdbext.render.text.verdict.origin import origin_lines

_MODULES: Mapping[str, str] = {
    "attached_ranks": "text.ranks",
    "backtrace": "text.backtrace",
    "rank_breakpoints": "text.rank_breakpoints",
    "build_report": "text.build_report",
    "check_report": "text.check_report",
    "checkup": "text.checkup",
    "communicator_table": "text.comms",
    "difference": "text.difference",
    "dumps": "text.dumps",
    "error_code": "text.error",
    "explanation": "text.explanation",
    "formatted": "formats.written",
    "gpu_core": "text.gpu_core",
    "gpu_core_arming": "text.gpu_core_arming",
    "job": "text.ranks",
    "locks": "text.locks",
    "profiling": "text.profiler.profiling",
    "stack": "text.verdict.stacks",
    "stream": "text.stream",
    "tensor": "text.tensors.tensor_answers",
    "trace": "text.trace",
    "stack_tree": "text.verdict.stacks",
    "verdict": "text.verdict.verdict",
}
"""Where a type of the model stands -> who renders it (`RENDERERS` there, and `LIST_RENDERERS` for lists). To load all
of them takes longer than Python to start, and a command needs one."""


def render(obj: Any, style: Style) -> List[str]:
    """The lines that show a model object (or a list of jobs, processes or snapshots of ranks) to a person.

    Raises `TypeError` for a type that has no renderer.
    """
    if isinstance(obj, GdbextError):
        return error_lines(obj, style)
    lines: List[str]
    if isinstance(obj, FromFile):
        dated = getattr(_module_of(type(obj.answer)), "DATED", {}).get(type(obj.answer))
        if dated is None:
            return render(obj.answer, style) + origin_lines(obj.origin, style)
        lines = dated(obj.answer, style, obj.origin)
        return lines
    if isinstance(obj, (list, tuple)) and not obj:
        lines = _loaded("text.ranks").jobs_lines((), style)
        return lines
    several = isinstance(obj, (list, tuple)) and len(set(map(type, obj))) == 1
    kind = type(obj[0]) if several else type(obj)
    table: Dict[type, Any] = getattr(_module_of(kind), "LIST_RENDERERS" if several else "RENDERERS", {})
    if kind not in table:
        raise TypeError(f"no renderer for {'a list of ' if several else ''}{kind.__name__}")
    lines = table[kind](obj, style)
    return lines


def dumps(obj: Any, indent: Optional[int] = None) -> str:
    """The text of `--json`, by `render.document`."""
    text: str = _loaded("json.document").dumps(obj, indent)
    return text


def binary_document(found: Formatted) -> bytes:
    """The bytes of a format that is no text. Raises GdbextError where a package is missing."""
    data: bytes = _loaded("formats.written").binary_document(found)
    return data


def page_text(page: Union[Page, JobDifference]) -> str:
    """The HTML file of a page, or of two looks compared. Raises ImportError where Jinja2 is missing."""
    text: str = _loaded("html.page" if isinstance(page, Page) else "html.difference_page").page_text(page)
    return text


def load() -> None:
    """Load all of it now, where later would be at a bad time. Raises ImportError when a package is missing."""
    for name in (*_MODULES.values(), "json.document"):
        _loaded(name)
    Style(color=True).highlight("")


def load_for(kind: type, json: bool, text: bool, page: bool = False) -> None:
    """Load what `dumps`, `render` and `page_text` of an object of that type will take, while there is time."""
    if page:
        _loaded("html.page")
    if json:
        _loaded("json.document")
    if text:
        _module_of(kind)


def _module_of(kind: type) -> Optional[ModuleType]:
    room, _, name = kind.__module__.rpartition(".")
    return _loaded(_MODULES[name]) if room == "gdbext.model" and name in _MODULES else None


def _loaded(name: str) -> ModuleType:
    return importlib.import_module(f"gdbext.render.{name}")


PLAIN = Style(width=120, unicode=True)
"""For text that goes into a file."""

__all__ = ["PLAIN", "Style", "binary_document", "dumps", "load", "load_for", "page_text", "render"]
