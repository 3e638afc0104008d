"""The GIL's owner waits in C for a lock whose owner waits for the GIL: `lock_gil.py LIBRARY`.

The worker calls LIBRARY without the GIL, which takes its lock and calls back into Python. The main thread calls it
with the GIL (PyDLL) and wants the same lock. LIBRARY says `ready`; stays until it is killed.
"""

import ctypes
import sys
import threading


def main(path):
    keeps, gives = ctypes.PyDLL(path), ctypes.CDLL(path)  # calls of a PyDLL keep the GIL, of a CDLL give it away
    callback = ctypes.CFUNCTYPE(None)(lambda: None)
    threading.Thread(target=gives.release_all, args=(callback,), name="worker", daemon=True).start()
    gives.wait_until_held()
    keeps.enqueue()


main(sys.argv[1])
