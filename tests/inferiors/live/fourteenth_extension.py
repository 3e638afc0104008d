"""The fourteenth set's parts in C++, built when they are first wanted."""

import ctypes

from tests.inferiors.lock_hangs import LIBRARY_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++")


def extension(loader=ctypes.CDLL):
    return loader(build("libfourteenth_engine.so", "live/fourteenth_extension.cpp", (*LIBRARY_FLAGS, *CPP)))
