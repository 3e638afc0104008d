"""All commands, of gdb and of the shell. A new one is a file in `declared`, and its name here."""

from typing import Tuple

from gdbext.commands.declaration import Command
from gdbext.commands.declared import (
    backtrace,
    check,
    comms,
    completion,
    demo,
    diagnose,
    diff,
    doctor,
    dump,
    error,
    explain,
    gdbinit,
    gpucore,
    launch,
    locks,
    man,
    pdb,
    profile,
    rank_breakpoints,
    ranks,
    run,
    schema,
    stream,
    tensor,
    trace,
    vscode,
    watch,
)

_NOUNS = (
    *(diagnose, locks, ranks, doctor, explain, comms, pdb, error, watch, diff, profile, trace, dump),
    *(launch, vscode, run, gpucore, gdbinit, schema, completion, man, demo, backtrace, rank_breakpoints),
    *(tensor, stream, check),
)
COMMANDS: Tuple[Command, ...] = tuple(command for noun in _NOUNS for command in noun.COMMANDS)
"""In the order in which `gdbext --help` lists them."""

IN_GDB = tuple(command for command in COMMANDS if command.gdb)
IN_SHELL = {command.gdbext: command for command in COMMANDS if command.gdbext}
