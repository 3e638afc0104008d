"""Starts a C++ program of the twenty-sixth set in the place of this process: `twenty_sixth_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import PROGRAM_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++", "-lm")

if __name__ == "__main__":
    program = build("twenty_sixth_native", "live/twenty_sixth_native.cpp", (*PROGRAM_FLAGS, *CPP))
    os.execv(program, [program, *sys.argv[1:]])
