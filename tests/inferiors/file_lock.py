"""A file's lock: `file_lock.py hold|wait PATH`. Says `ready` when it has the lock, or is about to wait for it."""

import fcntl
import signal
import sys

file = open(sys.argv[2], "a")  # noqa: SIM115 - open as long as the process lives
if sys.argv[1] == "wait":
    print("ready", flush=True)
fcntl.flock(file, fcntl.LOCK_EX)
print("ready", flush=True)
signal.pause()
