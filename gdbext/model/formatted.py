"""An answer in the form of another tool or of a place where people write to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from gdbext.model.look_origin import Origin
from gdbext.model.verdict import Diagnosis

BINARY = frozenset({"perfetto"})
"""Formats that are no text: they are written into a file."""


@dataclass(frozen=True)
class Formatted:
    """A diagnosis, with its tree and without secrets, to be written as `render/formats` knows how."""

    format: str
    diagnosis: Diagnosis
    origin: Optional[Origin] = None
