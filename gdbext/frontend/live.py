"""One look at the running rank processes: stop, copy, release, then read the copies at leisure.

No rank is ever held while symbols are read or text is printed. The order: everything that /proc tells without a
stop, the copies (milliseconds each), the names of Python frames, and last a gdb that reads the copies as cores.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Tuple

from gdbext.capture import stop
from gdbext.capture.python_frames import PythonReader, PythonThread
from gdbext.model.job import RankProcess
from gdbext.model.stack import ThreadStack

TELLING_LIBRARIES = re.compile(
    r"/lib(?:nccl|rccl|cuda|cudart|cublas|cublasLt|torch_cuda|torch_cpu|mpi|nvinfer|ggml|llama|mindspore|nvshmem)\b[^/]*\.so"
    r"|_turbomind|tensorrt_llm|transformer-shared|rtp_llm|/vllm/|/sgl_kernel/"
)
CPU_WINDOW = 0.25
"""Seconds over which the CPU use of each thread is measured: 25 ticks at the usual 100 Hz."""


@dataclass(frozen=True)
class Limits:
    """What a look may cost."""

    max_pause: float = 2.0  # seconds a rank may be held
    frames: int = 256  # per thread
    deadline: float = 120.0  # seconds gdb may take
    together: bool = False  # one consistent picture instead of the shortest stops
    gdb: Optional[str] = None


@dataclass
class _Rank:
    """What is gathered of one rank on the way; becomes a RankSnapshot."""

    process: RankProcess
    before: Optional[str] = None  # state letter ahead of the stop
    problems: Tuple[str, ...] = ()
    times: Any = None
    copy: Optional[stop.ProcessCopy] = None
    environment: Mapping[str, str] = ()  # type: ignore[assignment]
    python: Optional[PythonReader] = None
    python_threads: Mapping[int, PythonThread] = ()  # type: ignore[assignment]
    cpu: Mapping[int, float] = ()  # type: ignore[assignment]
    stacks: Tuple[ThreadStack, ...] = ()
    lost: bool = False

    def note(self, *texts: str) -> None:
        self.problems += tuple(text for text in texts if text not in self.problems)
