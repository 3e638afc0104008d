"""Waits for lines of stdin inside of loops over a generator, two lists and a dictionary; says "ready" each time."""

import sys


def shown(items):
    for item in items:
        yield item + 1


def inner(count):
    for number, _ in enumerate(shown(range(count))):
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
