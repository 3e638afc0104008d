"""llm-error and `gdbext error`: what an error number or name of CUDA, cuBLAS or NCCL means."""

from __future__ import annotations

import re
from argparse import Namespace
from typing import Optional, Tuple

from gdbext.analysis.failures.error_codes import by_name, by_number, in_message, similar_names
from gdbext.commands.session_port import Session
from gdbext.knowledge.errors.xid import XIDS
from gdbext.model.error_code import ErrorAnswer, ErrorCode
from gdbext.model.errors import UsageError
from gdbext.model.text.nearest import unknown_word_error

_LONGEST = 10  # digits
_OF_LIBRARY = re.compile(
    r"(?i)\b(?P<library>cuda|cublas|nccl)[ _-]?(?:(?:runtime|driver) )?"
    r"(?:(?:error|status|result|failure)(?: code)?[ :=#(]{0,3}|(?=\d+$))(?P<number>\d{1,10})\b(?!\.\d)"
)
"""`NCCL error 2`, `CUDA 700`."""
_TYPES = {"cuda": ("cudaError_t", "CUresult"), "cublas": ("cublasStatus_t",), "nccl": ("ncclResult_t",)}
_XID = re.compile(r"(?i)\bxid\b(?: ?\([^()]{1,40}\))?[: ]{0,3}(\d{1,5})\b")


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
        codes = (found,) if found else _numbered(asked)
    xid = _XID.search(asked)
    if not codes and xid:
        row = XIDS.get(int(xid[1]))
        raise UsageError(
            f"Xid {xid[1]}{f' ({row.meaning})' if row else ''} is an error of the GPU driver, not of a CUDA call",
            "see the kernel's log: dmesg | grep Xid; gdbext diagnose FILE reads that log too, alone or with stacks",
        )
    if not codes:
        raise unknown_word_error(
            "error",
            asked[:80],
            similar_names(asked),
            "give a number such as 700 or a name such as cudaErrorIllegalAddress",
        )
    return ErrorAnswer(asked, codes)


def _numbered(text: str) -> Tuple[ErrorCode, ...]:
    """The number that stands behind the name of its library."""
    found = _OF_LIBRARY.search(text)
    types = _TYPES[found["library"].lower()] if found else ()
    return tuple(one for one in by_number(int(found["number"])) if one.library in types) if found else ()


def _number(text: str) -> Optional[int]:
    try:
        return int(text, 0) if len(text) <= _LONGEST else None
    except ValueError:
        return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST else None


def answer(_: Session, args: Namespace) -> object:
    return explain_error(args.error or "")
