"""Waits for lines of stdin in a loop of calls; says "ready" each time."""

import sys


def wait():
    print("ready", flush=True)
    return sys.stdin.readline()


def turn(number):
    return wait() and number + 1


def turns():
    number = 0
    while number is not None:
        number = turn(number)


turns()
