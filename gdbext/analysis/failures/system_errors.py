"""What an error number of the system means, where a line of a log has the number alone."""

from __future__ import annotations

from gdbext.knowledge.errors.linux_errors import ERRNO, OF_EVERY_SYSTEM, SYSTEM_ERRORS
from gdbext.model.text.patterns import regex

_ERRNO = regex(ERRNO)


def errno_in(text: str) -> str:
    """`errno 14 is EFAULT (bad address)`; "" where the line names none, or says itself what it means."""
    found = _ERRNO.search(text)
    number = int(found["number"]) if found else 0
    name, _, words = SYSTEM_ERRORS.get(number, "").partition(" ")
    if not name or name in text or words.strip("()") in text.lower():
        return ""
    where = "" if number in OF_EVERY_SYSTEM else "on Linux, "
    return f"{where}errno {number} is {name} {words}"
