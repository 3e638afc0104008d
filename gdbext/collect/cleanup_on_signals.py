"""Whatever ends a look, nothing of it stays behind."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from types import FrameType
from typing import Callable, Iterable, Iterator, Optional

from gdbext.capture.private_folder import private_copies


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A folder that only we can read, gone afterwards also when we are told to end (TERM, HUP) or killed."""
    with tidy_end(), private_copies() as folder:
        yield folder


@contextlib.contextmanager
def tidy_end() -> Iterator[None]:
    """When we are told to end (TERM, HUP) we leave the block by an exception, so that nothing stays behind."""

    def leave(number: int, frame: Optional[FrameType]) -> None:
        raise SystemExit(128 + number)

    with handled((signal.SIGTERM, signal.SIGHUP), leave):
        yield


@contextlib.contextmanager
def handled(numbers: Iterable[signal.Signals], handler: Callable[[int, Optional[FrameType]], object]) -> Iterator[None]:
    """These signals are for `handler` while the block runs."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, other in before.items():
            signal.signal(number, other)
