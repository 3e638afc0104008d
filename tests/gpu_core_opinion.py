"""Cores of the tests' writer, opened by a real cuda-gdb: python -m tests.gpu_core_opinion CUDA-GDB. Status 1 where it
says otherwise. 11.8 knows rows of drivers before r525, and cubins up to CUDA 12."""

import os
import sys
import tempfile
from pathlib import Path

from gdbext.capture.gpu_code.cubin import Cubin
from tests import prove_gpu
from tests.inferiors import gpu_cubins
from tests.inferiors.gpu_core import OLD, core_of


def main(cuda_gdb):
    with tempfile.TemporaryDirectory() as folder:
        for architecture in ("sm_80", "sm_90"):
            image, entries = gpu_cubins.relocated(gpu_cubins.cubin(architecture))
            scale, spin = entries[gpu_cubins.SCALE], entries[gpu_cubins.SPIN]
            code = Cubin(image)
            at = next(pc for pc in range(scale, scale + 512, 16) if code.frames_at(*code.locate(pc))[0].line == 41)
            fault = {"entry": scale, "grid": (64, 1, 1), "block": (64, 1, 1), "sms": [3, 4], "warps": 2, "pc": at}
            other = {"entry": spin, "grid": (24, 1, 1), "block": (96, 1, 1), "sms": range(10, 34), "pc": spin + 48}
            for number in (4, 6, 12, 14):
                core = core_of(image, [{**fault, "fault": (number, at, 0xFF)}, other], driver=OLD, registers=True)
                path = Path(folder, f"{architecture}.{number}.nvcudmp")
                path.write_bytes(core)
                prove_gpu.compared(cuda_gdb, str(path))
                print(f"cuda-gdb agrees: exception {number}, {architecture}")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("HOME", tempfile.gettempdir())
    sys.exit(main(sys.argv[1]))
