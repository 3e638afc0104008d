"""Error numbers of Linux: errno(3), as a system call leaves them and as libraries print them."""

import errno
import os
from typing import Mapping

SYSTEM_ERRORS: Mapping[int, str] = {
    number: f"{name} ({os.strerror(number).lower()})" for number, name in errno.errorcode.items()
}
"""By number: `EFAULT (bad address)`."""

OF_EVERY_SYSTEM = frozenset(range(1, 35)) - {11}
"""Numbers that mean the same on Linux, macOS and the BSDs; the others are told as those of Linux."""

ERRNO = (
    r"\b(?:errno|Errno|ERRNO)(?: ?[=:] ?| is | )(?P<number>\d{1,3})\b"
    r"(?!\]?(?:: ?| ?- ?|, | )?\(?[A-Z][a-z]+ (?:[a-z]|to\b))"
)
"""How a line names one without saying in words what it means."""
