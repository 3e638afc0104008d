"""Starts a C++ program of the twelfth set in the place of this process: `twelfth_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import PROGRAM_FLAGS, build

CPP = ("-std=c++20", "-Wl,--no-as-needed", "-lstdc++")

if __name__ == "__main__":
    program = build("twelfth_native", "live/twelfth_native.cpp", (*PROGRAM_FLAGS, *CPP))
    os.execv(program, [program, *sys.argv[1:]])
