"""Local variables of every kind in nested calls; says "ready" and name=address of each, then waits on stdin."""

import sys


def outer(first, second="two", *rest, keyword=None, **others):
    shared = [1, 2, 3]
    unbound = 0
    del unbound

    def middle(captured):
        nonlocal shared

        def generator():
            inside = object()
            say("generator", inside=inside)
            yield inside

        ready("middle", captured=captured, shared=shared)
        return list(generator())

    ready("outer", first=first, second=second, rest=rest, keyword=keyword, others=others, shared=shared)
    return middle(first)


words = []


def ready(function, **values):
    words.extend(f"{function}.{name}={id(value):x}" for name, value in values.items())


def say(function, **values):
    ready(function, **values)
    print("ready", *words, flush=True)
    sys.stdin.read()


outer(1.5, *("two", "three"), keyword=b"k", other=4)
