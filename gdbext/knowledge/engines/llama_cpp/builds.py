"""llama.cpp: how it is built so that a look shows all it can."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import BuildRow

BUILDS: Tuple[BuildRow, ...] = (
    BuildRow(
        "llama-cpp",
        (
            "cmake -B build -DGGML_CUDA=ON -DGGML_CUDA_DEBUG=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo "
            "-DCMAKE_CXX_FLAGS=-fno-omit-frame-pointer -DCMAKE_C_FLAGS=-fno-omit-frame-pointer",
            "cmake --build build -j",
        ),
        "-O2 code with names, files, lines and arguments of host frames, and lines of kernels",
        "ggml-org/llama.cpp 00a2d6092, ggml/src/ggml-cuda/CMakeLists.txt: GGML_CUDA_DEBUG adds -lineinfo",
        (
            "older releases have no GGML_CUDA_DEBUG: -DCMAKE_CUDA_FLAGS=-lineinfo in its place",
            "GGML_NO_BACKTRACE=1 at start keeps a failed check from starting a gdb of its own",
        ),
    ),
)
