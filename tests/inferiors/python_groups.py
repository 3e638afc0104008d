"""Calls of torch.distributed as its frames show them, without torch; says "ready" and waits on stdin."""

import sys
import threading

SOURCE = """
def recv(tensor, src=None, group=None, tag=0, group_src=None):
    wait()


def all_reduce(tensor, group=None):
    wait()


def new_group(ranks=None):
    return _new_group_with_tag(ranks)


def _new_group_with_tag(ranks):
    ranks = sorted(ranks)
    group_name = '2'
    [rank for rank in ranks if (lambda: ranks)]
    wait()
"""


class ProcessGroup:
    pass


def main():
    everybody, some = ProcessGroup(), ProcessGroup()
    barrier, stay = threading.Barrier(7), threading.Event()

    def wait():
        barrier.wait()
        stay.wait()

    names = {
        "wait": wait,
        "_pg_names": {everybody: "0", some: "tp:1"},
        "_pg_group_ranks": {everybody: {rank: rank for rank in range(300)}, some: {260: 0, 3: 1}},
    }
    exec(compile(SOURCE, "/site-packages/torch/distributed/distributed_c10d.py", "exec"), names)
    calls = {
        "of-all": lambda: names["all_reduce"](None),
        "of-some": lambda: names["all_reduce"](None, group=some),
        "from-two": lambda: names["recv"](None, 2),
        "from-first-of-some": lambda: names["recv"](None, group=some, group_src=0),
        "from-anybody": lambda: names["recv"](None, src=None, group=everybody, tag=1 << 40),
        "makes": lambda: names["new_group"]([3, 1, 2]),
    }
    for name, call in calls.items():
        threading.Thread(target=call, name=name, daemon=True).start()
    barrier.wait()
    print("ready", flush=True)
    sys.stdin.read()


main()
