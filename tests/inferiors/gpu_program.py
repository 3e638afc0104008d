"""A program that does one thing on a real GPU, by the driver alone (ctypes; no toolkit): for scripts/prove-gpu.

python -m tests.inferiors.gpu_program fault    a kernel stores to an address that is not mapped, at engine.cu:41
python -m tests.inferiors.gpu_program stay     the same, and then it waits to be stopped; prints "failed" before
python -m tests.inferiors.gpu_program work     the kernel on memory that is there
python -m tests.inferiors.gpu_program hang     a kernel named as NCCL's spins for ever; prints "spinning" when it runs
"""

import contextlib
import ctypes
import sys
import threading
from pathlib import Path

SOURCE = Path(__file__).with_name("gpu_kernels.ptx")
SCALE, SPIN = b"_ZN6engine5scaleIfEEvPT_i", b"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LLPVi"
NOT_MAPPED = 0x10
_LINE_INFO = 13  # CU_JIT_GENERATE_LINE_INFO
_LAUNCH, _BLOCKS, _THREADS = "cuLaunchKernel", 4, 64


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def call(self, name, *arguments):
        answer = getattr(self.library, name)(*arguments)
        if answer:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(answer, ctypes.byref(text))
            raise SystemExit(f"{name}: {(text.value or b'?').decode()} ({answer})")

    def module(self, text):
        """The kernels, by the driver's own assembler, with lines."""
        module, options, values = ctypes.c_void_p(), (ctypes.c_int * 1)(_LINE_INFO), (ctypes.c_void_p * 1)(1)
        self.call("cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(text), 1, options, values)
        return module

    def launch(self, module, name, *arguments):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(name))
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(one) for one in arguments))
        self.call(_LAUNCH, function, _BLOCKS, 1, 1, _THREADS, 1, 1, 0, None, pointers, None)


def main(what):
    driver = Driver()
    driver.call("cuInit", 0)
    context = ctypes.c_void_p()
    device = ctypes.c_int()
    driver.call("cuDeviceGet", ctypes.byref(device), 0)
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    driver.call("cuCtxSetCurrent", context)
    module = driver.module(SOURCE.read_bytes() + b"\0")
    if what in ("fault", "stay"):
        driver.launch(module, SCALE, ctypes.c_uint64(NOT_MAPPED), ctypes.c_int(1 << 20))
        if what == "stay":
            driver.library.cuCtxSynchronize()
            print("failed", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                threading.Event().wait()
            return
        driver.call("cuCtxSynchronize")
        raise SystemExit("the store to an address that is not mapped was not noticed")
    if what == "work":
        memory = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4 * _THREADS))
        driver.call("cuMemsetD32_v2", memory, 0, ctypes.c_size_t(_THREADS))
        driver.launch(module, SCALE, memory, ctypes.c_int(1))
        driver.call("cuCtxSynchronize")
        return
    flag = ctypes.c_uint64()
    driver.call("cuMemAlloc_v2", ctypes.byref(flag), ctypes.c_size_t(4))
    driver.call("cuMemsetD32_v2", flag, 0, ctypes.c_size_t(1))
    driver.launch(module, SPIN, flag)
    print("spinning", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
