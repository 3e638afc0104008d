"""Ascend beside its public calls, which `knowledge.vendor_calls` has."""

from gdbext.knowledge.frame_precedence import LOCK
from gdbext.knowledge.row_kinds import FrameRule

RULES = (FrameRule("hccl", "nccl-group-launch", r"Hccl\w+", "Ascend's collectives", rank=LOCK),)
