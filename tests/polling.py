"""The one way in which tests and their jobs wait for what nothing tells of."""

from __future__ import annotations

import time
from typing import Any, Callable, Optional, Union

DEADLINE = 300.0
"""Seconds; only a failing test waits that long."""


def wait_until(
    condition: Callable[[], Any],
    what: Union[str, Callable[[], str]] = "what was waited for",
    seconds: float = DEADLINE,
) -> Any:
    """The first true value of `condition`. Fails, with `what` did not happen, after so many seconds."""
    value = comes_true(condition, seconds)
    assert value, f"{what() if callable(what) else what}: not within {seconds:g} s"
    return value


def lasts(seconds: float) -> None:
    """A stand-in for work that takes so long, or the pace of a measurement. Never to wait for something else."""
    time.sleep(seconds)


def comes_true(condition: Callable[[], Any], seconds: float) -> Optional[Any]:
    """The first true value of `condition`, or its last one after so many seconds.

    Asked more and more seldom: whoever waits leaves the processor to what it waits for."""
    end, pause = time.monotonic() + seconds, 0.001
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(pause)
        pause = min(1.5 * pause, 0.02)
