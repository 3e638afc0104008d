"""The thirty-third set's part in C++, built when it is first wanted."""

import ctypes

from tests.inferiors.lock_hangs import LIBRARY_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++")


def extension(loader=ctypes.CDLL):
    return loader(build("libthirty_third_engine.so", "live/thirty_third_extension.cpp", (*LIBRARY_FLAGS, *CPP)))
