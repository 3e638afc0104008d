"""Signals that end a process with a core (signal(7)), and how their sender is told (sigaction(2), si_code)."""

import signal
from typing import Mapping

FATAL: Mapping[int, str] = {
    int(signal.SIGILL): "Illegal instruction",
    int(signal.SIGABRT): "Aborted",
    int(signal.SIGBUS): "Bus error",
    int(signal.SIGFPE): "Arithmetic exception",
    int(signal.SIGSEGV): "Segmentation fault",
    int(signal.SIGSYS): "Bad system call",
}
"""A program that gets one of these from the kernel, or sends it to itself, has crashed. Not in the list: SIGQUIT and
SIGTRAP, by which people and debuggers make a running program dump."""
