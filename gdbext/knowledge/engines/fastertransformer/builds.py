"""FasterTransformer: how it is built so that a look shows all it can."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import BuildRow

BUILDS: Tuple[BuildRow, ...] = (
    BuildRow(
        "fastertransformer",
        (
            "mkdir -p build && cd build",
            "cmake -DSM=80 -DCMAKE_BUILD_TYPE=Release -DBUILD_PYT=ON -DBUILD_MULTI_GPU=ON "
            '-DCMAKE_CXX_FLAGS="-g -fno-omit-frame-pointer" '
            '-DCMAKE_CUDA_FLAGS="-g -lineinfo -Xcompiler=-fno-omit-frame-pointer" ..',
            "make -j",
        ),
        "release code with names, files, lines and arguments of host frames, and lines of kernels",
        "NVIDIA/FasterTransformer df4a753, CMakeLists.txt lines 125 to 202 and 272 to 280; docs/gpt_guide.md",
        (
            "SM is that of the GPU: 70, 75, 80, 86, 89, 90",
            "not -DCMAKE_BUILD_TYPE=Debug: it compiles each kernel with -O0 -G, and the library becomes too large to "
            "link (triton-inference-server/fastertransformer_backend#126)",
            "not RelWithDebInfo: with PyTorch it lacks the flag of the C++ ABI that Release and Debug are given",
            "FT_DEBUG_LEVEL=DEBUG at start checks after each kernel, in this build as well (v5.2 and newer)",
        ),
    ),
)
