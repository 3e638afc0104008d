"""TurboMind: how it is built so that a look shows all it can."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import BuildRow

BUILDS: Tuple[BuildRow, ...] = (
    BuildRow(
        "turbomind",
        (
            "CMAKE_BUILD_TYPE=RelWithDebInfo CXXFLAGS=-fno-omit-frame-pointer "
            'CUDAFLAGS="-lineinfo -Xcompiler=-fno-omit-frame-pointer" pip install -v -e .',
        ),
        "-O3 code with names, files, lines and arguments of host frames, and lines of kernels",
        "InternLM/lmdeploy 1263d5cd8: setup.py, generate.sh, CMakeLists.txt lines 275 to 305; cmake's CUDAFLAGS",
        (
            "without the package: mkdir build && cd build && bash ../generate.sh && ninja install, which has the same "
            "type and -lineinfo",
            "not CMAKE_BUILD_TYPE=Debug: it compiles each kernel with -O0 -G",
            "remove build/ first: cmake reads CXXFLAGS and CUDAFLAGS only when it has no cache",
        ),
    ),
)
