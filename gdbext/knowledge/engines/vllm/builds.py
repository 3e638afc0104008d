"""vLLM: how it is built so that a look shows all it can."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import BuildRow

BUILDS: Tuple[BuildRow, ...] = (
    BuildRow(
        "vllm",
        (
            "CMAKE_BUILD_TYPE=RelWithDebInfo CXXFLAGS=-fno-omit-frame-pointer NVCC_APPEND_FLAGS=-lineinfo "
            "pip install -v --no-build-isolation -e .",
        ),
        "-O2 code with names, files, lines and arguments of host frames, and lines of kernels",
        "vllm-project/vllm: setup.py (CMAKE_BUILD_TYPE, RelWithDebInfo by default; CMAKE_ARGS), CMakeLists.txt "
        "000a1ee93; nvcc's NVCC_APPEND_FLAGS",
        (
            "TORCH_CUDA_ARCH_LIST=9.0 builds for one GPU alone, in a fraction of the time",
            "most of its kernels are Triton's and FlashInfer's, compiled as they are needed: this changes csrc/ alone",
            "torch, and NCCL below it, stay as they were installed",
        ),
    ),
)
