"""Starts a C++ program of the twenty-ninth set in the place of this process: `twenty_ninth_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import PROGRAM_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++")

if __name__ == "__main__":
    program = build("twenty_ninth_native", "live/twenty_ninth_native.cpp", (*PROGRAM_FLAGS, *CPP))
    os.execv(program, [program, *sys.argv[1:]])
