"""Lets somebody else's reader work on a file that lies, for a while: it may go in circles and never come back.

It works in a thread, which an exception of ours ends when the time is up (PyThreadState_SetAsyncExc): between two steps
of Python.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Callable, List, Optional, TypeVar

T = TypeVar("T")


class _TooSlow(BaseException):
    """It has taken too long. No `except Exception` of a library holds it up."""


def in_time(seconds: float, work: Callable[[], T]) -> Optional[T]:
    """What `work` returns; None when it takes longer. Its exceptions are passed on, `RecursionError` and `MemoryError`
    as `ValueError`."""
    found: List[T] = []
    failed: List[Exception] = []

    def run() -> None:
        try:
            found.append(work())
        except (RecursionError, MemoryError) as error:
            failed.append(ValueError(f"it is too large to read ({type(error).__name__})"))
        except Exception as error:  # noqa: BLE001 - passed on below
            failed.append(error)
        except _TooSlow:
            pass

    thread = threading.Thread(target=run, name="gdbext-reader", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive() and thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_TooSlow))
        thread.join(seconds)
    if failed:
        raise failed[0]
    return found[0] if found else None
