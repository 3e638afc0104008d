"""Whatever ends a look, nothing of it stays behind."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from types import FrameType
from typing import Iterator, Optional

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

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
