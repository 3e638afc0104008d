"""TensorRT-LLM: how it is built so that a look shows all it can."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import BuildRow

BUILDS: Tuple[BuildRow, ...] = (
    BuildRow(
        "tensorrt-llm",
        (
            'python3 scripts/build_wheel.py --clean -b RelWithDebInfo -a "90-real" '
            "-D CMAKE_CUDA_FLAGS=-lineinfo -D CMAKE_CXX_FLAGS=-fno-omit-frame-pointer",
        ),
        "-O2 code with names, files, lines and arguments of host frames, and lines of kernels",
        "NVIDIA/TensorRT-LLM 01003c9c9, scripts/build_wheel.py; 02fbea289, cpp/CMakeLists.txt",
        (
            "-a is the GPU: 80-real, 90-real, 100-real",
            "-D COMPRESS_FATBIN=OFF leaves kernels uncompressed, for tools that cannot unpack them",
            "RelWithDebInfo alone gives kernels no lines: that setting is commented out in CMakeLists.txt for its size",
            "libraries that come prebuilt with it stay as they are",
        ),
    ),
)
