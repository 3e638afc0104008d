"""The auxiliary vector of a process."""

from __future__ import annotations

import struct
from typing import Dict


def auxiliary(auxv: bytes) -> Dict[int, int]:
    """The auxiliary vector (getauxval(3)) by its AT_ numbers."""
    words = struct.unpack_from(f"<{len(auxv) // 16 * 2}Q", auxv)
    return dict(zip(words[::2], words[1::2]))
