"""The program with a tensor on the stand-in device, linked to the stand-in libraries."""

import os

from tests.gdb.gdbrun import Target
from tests.inferiors.demo_build import libraries


class DeviceTarget(Target):
    """A running device_tensors.c, started with these words and with DEMO_FAULT."""

    def __init__(self, *arguments, fault=None):
        runtime = libraries()["libcudart.so.12"]
        folder = f"-L{runtime.parent}", f"-Wl,-rpath,{runtime.parent}"
        environ = {**os.environ, **({"DEMO_FAULT": fault} if fault else {})}
        flags = ("-g", "-O0", "-Wl,--no-as-needed", *folder, f"-l:{runtime.name}", "-ldl")
        super().__init__(*arguments, source="device_tensors.c", flags=flags, env=environ)

    def ask(self, word):
        """What the program says of itself: "streams" in use, "beats" so far."""
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())
