"""Whose a GPU core is, by its file's name: the format has no field for the process."""

from __future__ import annotations

from typing import Optional, Tuple

from gdbext.model.text.digits import integer_or_none
from gdbext.model.text.patterns import regex

_HOST = r"(?P<host>[A-Za-z0-9][A-Za-z0-9.\-]{0,252})"
_NAMES = tuple(
    regex(one)
    for one in (
        rf"gpucore\.{_HOST}\.(?P<pid>\d{{1,10}})\.\d{{1,20}}\.nvcudmp\Z",  # of `gdbext gpucore arm`
        rf"core_\d{{1,20}}_{_HOST}_(?P<pid>\d{{1,10}})\.nvcudmp\Z",  # the driver's own: core_TIME_HOST_PID
        rf"cuda_coredump_{_HOST}\.(?P<pid>\d{{1,10}})\.\d{{1,20}}(?:\.nvcudmp)?\Z",  # as vLLM and SGLang set it
    )
)


def host_and_pid(name: str) -> Tuple[Optional[str], Optional[int]]:
    """The host and the pid that the name tells; None where it does not."""
    plain = name[: -len(".gz")] if name.endswith(".gz") else name
    for pattern in _NAMES:
        found = pattern.match(plain)
        if found is not None:
            return found["host"], integer_or_none(found["pid"])
    return None, None
