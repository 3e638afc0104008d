"""Runs gdbext so that it stops itself (SIGSTOP) somewhere in a stop of the ranks; the first argument is the seed."""

import os
import random
import signal
import sys

from gdbext.__main__ import main
from gdbext.capture.copies import stack_bytes
from gdbext.capture.stop import ptrace

_ONCE_IN = 12  # steps
_seed = sys.argv.pop(1)
_forks = 0
_dice = random.Random(_seed)
_only_children = "--together" in sys.argv and _dice.random() < 0.7


def _forked():
    """Each of the children that stop ranks has dice of its own."""
    global _dice, _only_children
    _only_children = False
    _dice = random.Random(f"{_seed} {_forks}")


def _count():
    global _forks
    _forks += 1


def _halting(owner, name):
    step = getattr(owner, name)

    def halts(*arguments):
        result = step(*arguments) if name != "release" else None
        if not _only_children and not _dice.randrange(_ONCE_IN):
            os.kill(os.getpid(), signal.SIGSTOP)
        return step(*arguments) if name == "release" else result

    setattr(owner, name, halts)


os.register_at_fork(before=_count, after_in_child=_forked)
for _name in ("seize", "interrupt", "settle", "read_registers", "release"):
    _halting(ptrace.Tracees, _name)
_halting(stack_bytes.StackCopier, "copy")

sys.exit(main())
