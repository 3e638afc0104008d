"""Starts a C++ program of the fourth set in the place of this process: `fourth_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import LIBRARY_FLAGS, PROGRAM_FLAGS, build

CPP = ("-std=c++20", "-Wl,--no-as-needed", "-lstdc++")

if __name__ == "__main__":
    os.environ["PLUGIN"] = build("libfourth_plugin.so", "live/fourth_plugin.cpp", (*LIBRARY_FLAGS, *CPP, "-ldl"))
    program = build("fourth_native", "live/fourth_native.cpp", (*PROGRAM_FLAGS, *CPP, "-ldl", "-fopenmp", "-lrt"))
    os.execv(program, [program, *sys.argv[1:]])
