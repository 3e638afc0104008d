"""The recorded looks of `gdbext demo`, files of the package."""

import os

import gdbext

FOLDER = os.path.join(os.path.dirname(gdbext.__file__), "demo")
NAMES = sorted(file[: -len(".json")] for file in os.listdir(FOLDER) if file.endswith(".json"))
"""What `gdbext demo` takes: hangs of the demo engine."""
