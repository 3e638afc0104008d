"""Starts a C++ program of the thirtieth set in the place of this process: `thirtieth_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import PROGRAM_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++")

if __name__ == "__main__":
    program = build("thirtieth_native", "live/thirtieth_native.cpp", (*PROGRAM_FLAGS, *CPP))
    os.execv(program, [program, *sys.argv[1:]])
