"""Starts a C++ program of the thirty-third set in the place of this process: `thirty_third_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import PROGRAM_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++")

if __name__ == "__main__":
    program = build("thirty_third_native", "live/thirty_third_native.cpp", (*PROGRAM_FLAGS, *CPP))
    os.execv(program, [program, *sys.argv[1:]])
