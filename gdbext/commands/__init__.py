"""Declarations and bodies of the commands: return model objects, never print, never import gdb."""

from __future__ import annotations

from typing import Tuple

from gdbext.commands import break_points, check, comms, diagnose, error, explain, locks, ranks, stream, tensor
from gdbext.commands.declaration import Argument, Command

COMMANDS: Tuple[Command, ...] = (
    *(ranks.COMMANDS + diagnose.COMMANDS + comms.COMMANDS + locks.COMMANDS),
    *break_points.COMMANDS,
    *(tensor.COMMANDS + stream.COMMANDS + check.COMMANDS + error.COMMANDS + explain.COMMANDS),
)
"""Every command, in the order in which the reference lists them."""

__all__ = ["COMMANDS", "Argument", "Command"]
