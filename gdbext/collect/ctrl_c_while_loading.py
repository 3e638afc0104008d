"""Ctrl-C while modules are loaded."""

from __future__ import annotations

import contextlib
import signal

TYPE_CHECKING = False  # as in typing, which takes longer to load than all else here: until then Ctrl-C is not caught
if TYPE_CHECKING:
    from typing import Iterator


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Raise `KeyboardInterrupt` at the end of the block when Ctrl-C came in it. In the middle of an import it may come
    while Python runs a callback of its own; there it is printed as ignored, and nobody ends."""
    came = False

    def note(*_: object) -> None:
        nonlocal came
        came = True

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, or somebody else's
        yield
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
