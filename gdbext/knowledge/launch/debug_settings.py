"""Variables of a process that decide what it says of itself when it hangs or fails, and what they cost."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from gdbext.knowledge.launch import gpu_core_settings

_ARM = "`gdbext gpucore arm -- COMMAND` starts it with what its driver needs for that"


class DebugSetting(NamedTuple):
    """The first of `variables` that is set counts; `on` is searched for in its value. `needs`: a library that it is
    for, by the start of its file's name. `since`: from which release on it is on where no variable is set, and how
    that package or library is called (regular expression); None: it is off then."""

    name: str
    needs: str
    variables: Tuple[str, ...]
    on: str
    with_it: str
    without: str
    remedy: str
    source: str
    since: Optional[Tuple[str, str]] = None


SETTINGS: Tuple[DebugSetting, ...] = (
    DebugSetting(
        "NCCL's log",
        "libnccl",
        ("NCCL_DEBUG",),
        r"(?i)^(WARN|INFO|TRACE)$",
        "NCCL says why a call failed",
        "NCCL does not say why a call fails",
        "NCCL_DEBUG=WARN at start (INFO for a hang in its initialisation); NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log",
        "NVIDIA/nccl debug.cc: read once",
    ),
    DebugSetting(
        "NCCL's RAS",
        "libnccl",
        ("NCCL_RAS_ENABLE",),
        r"^[1-9]",
        "NCCL answers which ranks are behind (port 28028 of this host)",
        "nobody can ask NCCL which ranks are behind",
        "NCCL 2.24 or newer, without NCCL_RAS_ENABLE=0",
        "NVIDIA/nccl ras.cc",
        ("nccl", "2.24"),
    ),
    DebugSetting(
        "recorder",
        "libtorch_cuda",
        ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"),
        r"^0*[1-9]",
        "torch's flight recorder keeps the last collectives of a rank",
        "torch's flight recorder is off: the last collectives of a rank are not kept",
        "TORCH_FR_BUFFER_SIZE=2000 (older: TORCH_NCCL_TRACE_BUFFER_SIZE), TORCH_NCCL_DUMP_ON_TIMEOUT=1 at start",
        "pytorch, ProcessGroupNCCL.hpp and FlightRecorder.hpp: on in 2.13 and 2.15; before, unknown to us",
        ("^torch$", "2.13"),
    ),
    DebugSetting(
        "C++ stacks",
        "libc10",
        ("TORCH_SHOW_CPP_STACKTRACES",),
        r"^1$",
        "an error of torch comes with its C++ frames",
        "an error of torch comes without its C++ frames",
        "TORCH_SHOW_CPP_STACKTRACES=1 at start",
        "pytorch, c10/util/Exception",
    ),
    DebugSetting(
        "GPU core",
        "libcuda",
        (gpu_core_settings.ON_EXCEPTION,),
        r"^1$",
        "a fault in a kernel leaves a GPU core dump",
        "a fault in a kernel leaves no GPU core dump",
        _ARM,
        "gpu_core_settings.py",
    ),
    DebugSetting(
        "GPU hang",
        "libcuda",
        (gpu_core_settings.ON_DEMAND,),
        r"^1$",
        "a GPU core dump can be asked for while it hangs",
        "no GPU core dump can be asked for while it hangs",
        _ARM,
        "gpu_core_settings.py",
    ),
)

FAULT_HANDLER = "PYTHONFAULTHANDLER"
"""Set to anything, Python prints its stacks when it dies of a signal (docs.python.org, faulthandler)."""
