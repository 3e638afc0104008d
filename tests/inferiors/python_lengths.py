"""A function with containers of all kinds; says "ready" and waits for a line."""

import sys
from collections import deque


def wait(tensors):
    names, layers, seen, waiting = ("a", "b", "c"), {"x": 1, "y": 2}, set(range(5)), deque("abcd")
    print("ready", flush=True)
    sys.stdin.readline()
    return names, layers, seen, waiting


wait([0] * 11)
