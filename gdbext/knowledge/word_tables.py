"""Tables of short words, several in a line. A file of its own: the start loads it, and no rows."""

from typing import Dict


def pairs(text: str) -> Dict[str, str]:
    """`KEY=VALUE KEY=VALUE` as a table."""
    return dict(pair.split("=", 1) for pair in text.split())


def numbered(text: str) -> Dict[int, str]:
    """The same by number: `0=VALUE 0x10=VALUE`."""
    return {int(number, 0): value for number, value in pairs(text).items()}
