"""SGLang: how its kernels are built so that a look shows all it can."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import BuildRow

BUILDS: Tuple[BuildRow, ...] = (
    BuildRow(
        "sglang",
        (
            "cd sgl-kernel",
            "CXXFLAGS=-fno-omit-frame-pointer NVCC_APPEND_FLAGS=-lineinfo pip install -v --no-build-isolation "
            "-Ccmake.build-type=RelWithDebInfo -Cinstall.strip=false .",
        ),
        "-O3 code with names, files, lines and arguments of host frames, and lines of kernels",
        "sgl-project/sglang: sgl-kernel/pyproject.toml 7461fb24e (scikit-build-core, Release), CMakeLists.txt "
        "00390b863; scikit-build-core's install.strip; nvcc's NVCC_APPEND_FLAGS",
        (
            "its host code is Python; kernels that Triton and FlashInfer compile as they are needed stay as they are",
            "torch, and NCCL below it, stay as they were installed",
        ),
    ),
)
