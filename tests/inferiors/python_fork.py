"""A forked child, as the workers of engines are: its thread state may still carry its parent's thread id.

Prints `ready PID-OF-CHILD` and stays until its stdin closes.
"""

import os
import sys
import threading


def child():
    print("ready", os.getpid(), flush=True)
    sys.stdin.read()


def main():
    threading.Thread(target=threading.Event().wait, name="other", daemon=True).start()
    if os.fork() == 0:
        child()
        os._exit(0)
    os.wait()


main()
