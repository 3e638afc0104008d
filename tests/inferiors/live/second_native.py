"""Starts a C++ program of the second set in the place of this process: `second_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import LIBRARY_FLAGS, PROGRAM_FLAGS, build

CPP = ("-std=c++20", "-Wl,--no-as-needed", "-lstdc++")

if __name__ == "__main__":
    plugin = build("libsecond_plugin.so", "live/second_plugin.cpp", (*LIBRARY_FLAGS, *CPP, "-ldl"))
    program = build("second_native", "live/second_native.cpp", (*PROGRAM_FLAGS, *CPP, "-ldl"))
    os.environ["PLUGIN"] = plugin
    os.execv(program, [program, *sys.argv[1:]])
