"""RTP-LLM: how it is built so that a look shows all it can."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import BuildRow

BUILDS: Tuple[BuildRow, ...] = (
    BuildRow(
        "rtp-llm",
        ("bazelisk build //rtp_llm:rtp_llm --config=cuda12_6 --copt=-fno-omit-frame-pointer",),
        "what it has anyway (-O2 -g, not stripped, line info of kernels), and frame pointers in C++ files",
        "alibaba/rtp-llm 4b8d39cd5: .bazelrc, 3rdparty/cuda_config/cuda/build_defs.bzl.tpl, docs start/install.md",
        (
            "in .cu files host functions keep none: the wrapper of nvcc hands no -f option on",
            "--config=cuda12_6 is that of your CUDA: cuda12_2, cuda12_9, cuda13, ...",
            "--config=debug adds -O0: host frames have all arguments; kernels of sm_100 and sm_120 are left out",
            "if the wheel's files are stripped on their way, keep those of bazel-bin: they have the same build-ids",
        ),
    ),
)
