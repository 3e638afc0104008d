"""Starts a C++ program of the twenty-third set in the place of this process: `twenty_third_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import LIBRARY_FLAGS, PROGRAM_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++", "-ldl")

if __name__ == "__main__":
    program = build("twenty_third_native", "live/twenty_third_native.cpp", (*PROGRAM_FLAGS, *CPP))
    library = build("libsequence.so", "live/twenty_third_scheduler.cpp", (*LIBRARY_FLAGS, *CPP))
    os.execv(program, [program, *sys.argv[1:3], library])
