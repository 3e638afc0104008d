"""Waits for lines of stdin inside of loops over a range, two lists at once and a dictionary; says "ready" each time."""

import sys


def inner(count):
    for number, _ in enumerate(range(count)):
        if number >= 3:
            print("ready", flush=True)
            sys.stdin.readline()


def outer():
    names = ["name"] * 50
    for number, _pair in enumerate(zip(names, [1] * 60)):
        for _key in {"a": 1, "b": 2}:
            if number == 5:
                inner(10**9)


outer()
