"""Error numbers: what they mean, what is behind them, what to do."""

from __future__ import annotations

from typing import Callable, List, Mapping, Optional

from gdbext.model.error_code import ErrorAnswer, ErrorCode
from gdbext.render.lines import joined
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style

STICKY = "sticky: every later CUDA call of this process fails too; the process must be restarted"
PASSING = "not sticky: later calls can succeed once the reason is gone"
UNKNOWN = "it may be sticky, depending on the underlying error"


def ending(answer: ErrorAnswer, style: Style) -> List[str]:
    """All meanings; with several, those of each library under its type."""
    shared = _shared(answer)
    return joined(code_lines(one, style, brief=one is shared) for one in answer.codes)


def _shared(answer: ErrorAnswer) -> Optional[ErrorCode]:
    """The driver's entry where the runtime's says the same."""
    runtime = next((one for one in answer.codes if one.library == "cudaError_t"), None)
    driver = next((one for one in answer.codes if one.library == "CUresult"), None)
    return driver if runtime and driver and runtime.meaning == driver.meaning else None


def code_lines(one: ErrorCode, style: Style, brief: bool = False) -> List[str]:
    """One code; `brief` when another with the same meaning was just shown."""
    head = f"{one.library} {one.number}  {one.name}"
    if brief:
        return [style.paint(head, "strong"), "  the same as cudaError_t"]
    lines = [style.paint(head, "strong"), *wrapped(one.meaning, style, indent="  ", first="  ")]
    lines += wrapped(sticky_words(one), style, indent="  ", first="  ") if one.number else []
    for title, texts in (("usual causes", one.causes), ("what to do", one.steps)):
        if texts:
            lines.append(f"  {title}")
            for text in texts:
                lines += wrapped(clean(text, style), style, indent="      ", first="    - ")
    if not one.source:
        lines += wrapped(
            "gdbext has no further explanation; the meaning is inferred from the name", style, indent="  ", first="  "
        )
    return lines


def sticky_words(one: ErrorCode) -> str:
    """One line on whether the process can go on."""
    return UNKNOWN if one.sticky is None else STICKY if one.sticky else PASSING


RENDERERS: Mapping[type, Callable[..., List[str]]] = {ErrorAnswer: ending}
