"""Starts a C++ program of the twenty-eighth set in the place of this process: `twenty_eighth_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import PROGRAM_FLAGS, build

CPP = ("-std=c++17", "-fopenmp", "-Wl,--no-as-needed", "-lstdc++")

if __name__ == "__main__":
    program = build("twenty_eighth_native", "live/twenty_eighth_native.cpp", (*PROGRAM_FLAGS, *CPP))
    os.execv(program, [program, *sys.argv[1:]])
