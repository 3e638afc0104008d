"""Text of other tools to snapshots."""

from gdbext.parsers.assemble.job import parse_files

__all__ = ["parse_files"]
