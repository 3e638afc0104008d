"""Text of other tools to snapshots."""

from __future__ import annotations

from gdbext.parsers.assemble.job import parse_files

__all__ = ["parse_files"]
