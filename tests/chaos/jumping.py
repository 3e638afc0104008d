"""Runs gdbext on a wall clock that jumps back and forth by up to a day; the first argument is the seed."""

import random
import sys
import time

_dice = random.Random(sys.argv.pop(1))
_real, _real_ns = time.time, time.time_ns


def _jump():
    return _dice.choice((0, 0, -86400, 86400, -1, 1, 3600))


time.time = lambda: _real() + _jump()
time.time_ns = lambda: _real_ns() + _jump() * 10**9

from gdbext.__main__ import main  # noqa: E402  it has to see that clock

sys.exit(main())
