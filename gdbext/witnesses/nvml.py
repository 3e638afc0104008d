"""NVML, in a child process: a lost GPU can block a call for ever, and a child can be killed.

Utilisation over several samples, power against its limit, memory, ECC errors and the pids on each GPU. NVML talks to
the kernel driver, not to the ranks.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from gdbext.knowledge.causes.witnesses import IDLE_MEMORY, IDLE_POWER, NVML_GPU_IS_LOST, SPINS_AT, THROTTLES
from gdbext.model.witness import Statement, Witness
from gdbext.witnesses.question import Asked, Question, absent_witness, failed_witness, present_witness

NAME = "NVML"
LIBRARY = "libnvidia-ml.so.1"
_FOLDERS = (
    f"/usr/lib/{platform.machine()}-linux-gnu",
    f"/lib/{platform.machine()}-linux-gnu",
    "/usr/lib64",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/usr/lib/wsl/lib",
    "/usr/lib",
)
_PROGRAM = os.path.join(os.path.dirname(__file__), "nvml_child.py")
_MOST_BYTES = 1 << 20


def ask(question: Question) -> Witness:
    """What every GPU of this host does."""
    library = find_library()
    if library is None:
        return absent_witness(NAME, f"no {LIBRARY.partition('.')[0]}")
    argv = [sys.executable, "-I", "-S", _PROGRAM, library]
    try:
        # subprocess.run kills the child at the timeout.
        done = subprocess.run(
            argv, capture_output=True, timeout=max(0.05, question.left - 0.1), stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return failed_witness(NAME, "a call did not return in time; a lost GPU does that")
    try:
        document = json.loads(done.stdout[:_MOST_BYTES])
        if "error" in document:
            return absent_witness(NAME, str(document["error"])[:120])
        devices = [one for one in document["devices"] if isinstance(one, dict)]
    except (ValueError, KeyError, TypeError):
        return failed_witness(NAME, f"the child ended with status {done.returncode} and no result")
    about = f"{len(devices)} {'GPU' if len(devices) == 1 else 'GPUs'}, driver {str(document.get('driver', '?'))[:40]}"
    return present_witness(NAME, about, tuple(_statements(devices, question)))


def find_library(name: str = LIBRARY, environ: Optional[Mapping[str, str]] = None) -> Optional[str]:
    """Path of a library of NVIDIA's driver where loaders look, without loading it into this process."""
    listed = (os.environ if environ is None else environ).get("LD_LIBRARY_PATH", "")
    for folder in (*filter(None, listed.split(":")), *_FOLDERS):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    return None


def _statements(devices: List[Dict[str, Any]], question: Question) -> Iterator[Statement]:
    by_pid = question.by_pid()
    for device in devices[:64]:
        ranks = _ranks_on(device, by_pid, question.ranks)
        index = ranks[0].index if len(ranks) == 1 else None
        name = f"GPU {device.get('index')}" + (f" ({', '.join(one.label for one in ranks[:4])})" if ranks else "")
        yield from _device_statements(name, device, index)


def _ranks_on(device: Mapping[str, Any], by_pid: Mapping[int, Asked], ranks: Tuple[Asked, ...]) -> List[Asked]:
    """The job's ranks on a GPU: by the pids that NVML lists, else by the number of the device on the host."""
    pids = device.get("pids")
    found = {by_pid[pid].index: by_pid[pid] for pid in pids or () if pid in by_pid}
    if found:
        return list(found.values())
    number = device.get("index")
    return [one for one in ranks if one.device and re.search(rf"(:|\(GPU ){number}\)?$", one.device)]


def _device_statements(name: str, device: Mapping[str, Any], index: Optional[int]) -> Iterator[Statement]:
    if device.get("error") == NVML_GPU_IS_LOST:
        yield Statement(
            f"{name} is lost: it has fallen off the bus", "gpu-fault" if index is not None else "gpu-error", index
        )
        return
    use = _numbers(device.get("utilisation"))
    moved = _numbers(device.get("memory_utilisation"))
    power = _numbers(device.get("power_mw"))
    limit = _number(device.get("limit_mw"))
    if use:
        watts = f", {max(power) / 1000:.0f} W" + (f" of {limit / 1000:.0f} W" if limit else "") if power else ""
        memory = _number(device.get("memory_used"))
        text = f"{name}: {min(use)} to {max(use)} % busy{watts}, memory {max(moved, default=0)} % busy"
        text += f", {memory / 2**30:.1f} GiB used" if memory else ""
        yield Statement(text, "spins" if is_spinning(use, moved, power, limit) else "fact", index)
    errors = _number(device.get("ecc_uncorrected"))
    if errors:
        yield Statement(
            f"{name} has {errors} uncorrected memory errors since the driver was loaded", "gpu-error", index
        )
    slow = [meaning for bit, meaning in THROTTLES.items() if (_number(device.get("throttle")) or 0) & bit]
    if slow:
        yield Statement(f"{name} is throttled: {', '.join(slow)}", "fact", index)


def is_spinning(use: List[int], moved: List[int], power: List[int], limit: Optional[int]) -> bool:
    """The signature of a collective that waits: fully busy, at idle power, moving nothing, in every sample."""
    if len(use) < 3 or not power or not limit:
        return False
    return min(use) >= SPINS_AT and max(power) < IDLE_POWER * limit and max(moved, default=0) <= IDLE_MEMORY


def _numbers(values: Any) -> List[int]:
    return [value for value in values if isinstance(value, int)] if isinstance(values, list) else []


def _number(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
