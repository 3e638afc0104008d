"""Starts a C++ program of the fourteenth set in the place of this process: `fourteenth_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import PROGRAM_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++")

if __name__ == "__main__":
    program = build("fourteenth_native", "live/fourteenth_native.cpp", (*PROGRAM_FLAGS, *CPP))
    os.execv(program, [program, *sys.argv[1:]])
