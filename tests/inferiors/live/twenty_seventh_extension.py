"""The twenty-seventh set's part in C++, built when it is first wanted."""

import ctypes

from tests.inferiors.lock_hangs import LIBRARY_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++")


def extension(loader=ctypes.CDLL):
    name = "libtwenty_seventh_engine.so"
    return loader(build(name, "live/twenty_seventh_extension.cpp", (*LIBRARY_FLAGS, *CPP)))
