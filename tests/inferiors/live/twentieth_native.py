"""Starts a C++ program of the twentieth set in the place of this process: `twentieth_native.py NAME FOLDER`."""

import os
import sys

from tests.inferiors.lock_hangs import LIBRARY_FLAGS, PROGRAM_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++")

if __name__ == "__main__":
    program = build("twentieth_native", "live/twentieth_native.cpp", (*PROGRAM_FLAGS, *CPP, "-rdynamic", "-ldl"))
    backend = build("libbackend_identity.so", "live/twentieth_backend.cpp", (*LIBRARY_FLAGS, *CPP))
    os.execv(program, [program, *sys.argv[1:], backend])
