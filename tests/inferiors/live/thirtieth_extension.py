"""The thirtieth set's part in C++, built when it is first wanted."""

import ctypes

from tests.inferiors.lock_hangs import LIBRARY_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++")


def extension(loader=ctypes.CDLL):
    return loader(build("libthirtieth_engine.so", "live/thirtieth_extension.cpp", (*LIBRARY_FLAGS, *CPP)))
