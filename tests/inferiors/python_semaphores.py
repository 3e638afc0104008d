"""A process that has taken semaphores of multiprocessing, and a child that has; says "ready", its child's pid, and the
name and address of each."""

import multiprocessing
import sys

fork = multiprocessing.get_context("fork")


def main():
    locks = {"lock": fork.Lock(), "childs": fork.Lock(), "free": fork.Lock(), "recursive": fork.RLock()}
    locks.update(slot=fork.BoundedSemaphore(1), counted=fork.Semaphore(3))
    reads, writes = fork.Pipe(duplex=False)
    ends, parent = fork.Pipe(duplex=False)

    def child():
        locks["childs"].acquire()
        locks["slot"].release()
        writes.send(None)
        parent.close()
        ends.poll(None)  # until its parent ends

    for name in ("lock", "recursive", "slot", "counted"):
        locks[name].acquire()
    started = fork.Process(target=child, daemon=True)
    started.start()
    reads.recv()
    print("ready", started.pid, *(f"{name}={lock._semlock.handle}" for name, lock in locks.items()), flush=True)
    sys.stdin.read()


main()
