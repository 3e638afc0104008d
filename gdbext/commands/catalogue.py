"""All commands. Apart from the package itself, so that who needs one of its modules does not load them all."""

from __future__ import annotations

from typing import Tuple

from gdbext.commands import (
    backtrace,
    break_points,
    check,
    comms,
    diagnose,
    doctor,
    error,
    explain,
    locks,
    ranks,
    stream,
    tensor,
)
from gdbext.commands.declaration import Command

COMMANDS: Tuple[Command, ...] = (
    *(ranks.COMMANDS + diagnose.COMMANDS + backtrace.COMMANDS + comms.COMMANDS + locks.COMMANDS),
    *break_points.COMMANDS,
    *(tensor.COMMANDS + stream.COMMANDS + check.COMMANDS + error.COMMANDS + explain.COMMANDS + doctor.COMMANDS),
)
"""Every command, in the order in which the reference lists them."""
