"""llm-error and `gdbext error`: what an error number or name of CUDA, cuBLAS or NCCL means."""

from __future__ import annotations

from argparse import Namespace
from typing import Optional

from gdbext.analysis.failures.error_codes import by_name, by_number, in_message, near
from gdbext.commands.session_port import Session
from gdbext.model.error_code import ErrorAnswer
from gdbext.model.errors import UsageError
from gdbext.model.text.nearest import unknown

_LONGEST = 10  # digits


def explain_error(asked: str) -> ErrorAnswer:
    """What is known of a number (decimal or 0x...), a name, or a text with one in it. Raises `UsageError`."""
    asked = asked.strip()
    if not asked:
        raise UsageError("which error?", "give a number like 700 or a name like cudaErrorIllegalAddress")
    number = _number(asked)
    if number is not None:
        codes = by_number(number)
        if not codes:
            raise UsageError(f"{asked} is not a known error number of CUDA, cuBLAS or NCCL")
        return ErrorAnswer(asked, codes)
    codes = by_name(asked)
    if not codes:
        found = in_message(asked)
        codes = (found,) if found else ()
    if not codes:
        raise unknown(
            "error", asked[:80], near(asked), "give a number such as 700 or a name such as cudaErrorIllegalAddress"
        )
    return ErrorAnswer(asked, codes)


def _number(text: str) -> Optional[int]:
    try:
        return int(text, 0) if len(text) <= _LONGEST else None
    except ValueError:
        return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST else None


def answer(_: Session, args: Namespace) -> object:
    return explain_error(args.error or "")
