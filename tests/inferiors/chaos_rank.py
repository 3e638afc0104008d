"""The Python kind of chaos_rank.c: STATE INDEX. Some threads that wait, one that beats, one that comes and goes."""

import ctypes
import mmap
import os
import struct
import sys
import threading
import time

ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: it ends with the campaign


def beat(state, place):
    beats = 0
    while True:
        beats += 1
        struct.pack_into("<Q", state, place, beats)
        time.sleep(0.001)


def churn():
    while True:
        threading.Thread(target=time.sleep, args=(0.002,)).start()
        time.sleep(0.003)


def main():
    with open(sys.argv[1], "r+b") as file:
        state = mmap.mmap(file.fileno(), 4096)
    place = 64 * int(sys.argv[2])
    struct.pack_into("<2Q", state, place + 8, 1, os.getpid())
    never = threading.Event()
    for work, arguments in ((never.wait, ()), (never.wait, ()), (churn, ()), (beat, (state, place))):
        threading.Thread(target=work, args=arguments, daemon=True).start()
    while True:
        with threading.Lock():
            time.sleep(3600)


main()
