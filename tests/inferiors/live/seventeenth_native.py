"""Starts a C++ program of the seventeenth set in the place of this process: `seventeenth_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import PROGRAM_FLAGS, build

CPP = ("-std=c++17", "-fopenmp", "-Wl,--no-as-needed", "-lstdc++")

if __name__ == "__main__":
    program = build("seventeenth_native", "live/seventeenth_native.cpp", (*PROGRAM_FLAGS, *CPP))
    os.execv(program, [program, *sys.argv[1:]])
