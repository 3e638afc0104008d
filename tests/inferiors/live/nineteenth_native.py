"""Starts a C++ program of the nineteenth set in the place of this process: `nineteenth_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import PROGRAM_FLAGS, build

CPP = ("-std=c++17", "-fopenmp", "-Wl,--no-as-needed", "-lstdc++")

if __name__ == "__main__":
    program = build("nineteenth_native", "live/nineteenth_native.cpp", (*PROGRAM_FLAGS, *CPP))
    os.execv(program, [program, *sys.argv[1:]])
