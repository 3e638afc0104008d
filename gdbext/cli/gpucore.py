"""`gdbext gpucore`: GPU core dumps."""

from __future__ import annotations

import argparse
import importlib

from gdbext.collect.ctrl_c_while_loading import interrupts_wait

_ACTIONS = {
    "arm": "gdbext.cli.gpu_cores.arm",
    "status": "gdbext.cli.gpu_cores.armed_ranks",
    "trigger": "gdbext.cli.gpu_cores.trigger",
    "read": "gdbext.cli.gpu_cores.read_cores",
}


def run(options: argparse.Namespace) -> int:
    """One action; returns its exit status."""
    with interrupts_wait():
        module = importlib.import_module(_ACTIONS[options.action])
    status: int = module.run(options)
    return status
