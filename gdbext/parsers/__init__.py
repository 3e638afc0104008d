"""Text of other tools to snapshots."""

from gdbext.parsers.assemble.texts_to_snapshot import parse_files

__all__ = ["parse_files"]
