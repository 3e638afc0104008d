"""The child of nvml.py: a program of its own that reads NVML by ctypes and prints one JSON document.

Structures and numbers are those of nvml.h (checked against nvidia-ml-py 13.615). A function that a driver does not have
leaves its value out.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from typing import Any, Callable, Dict, List, Optional

SAMPLES, APART = 3, 0.35  # seconds; NVML averages over 1/6 to 1 s
_LOST = 15  # NVML_ERROR_GPU_IS_LOST
_MOST_DEVICES, _MOST_PROCESSES = 64, 1024
_UNCORRECTED, _SINCE_LOADED = 1, 0  # NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC


class Utilisation(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Pci(ctypes.Structure):
    _fields_ = [("legacy", ctypes.c_char * 16), ("numbers", ctypes.c_uint * 5), ("bus", ctypes.c_char * 32)]


class Failed(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class Nvml:
    """The library. `call` raises `Failed`, with NVML's status, for anything but success."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self.lost = False

    def call(self, name: str, *arguments: Any) -> None:
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise Failed(13) from None  # NVML_ERROR_FUNCTION_NOT_FOUND
        status = function(*arguments)
        self.lost = self.lost or status == _LOST
        if status:
            raise Failed(status)

    def number(self, name: str, *arguments: Any, kind: Any = ctypes.c_uint) -> Optional[int]:
        value = kind()
        try:
            self.call(name, *arguments, ctypes.byref(value))
        except Failed:
            return None
        return int(value.value)

    def structure(self, name: str, device: Any, kind: Callable[[], Any]) -> Any:
        value = kind()
        try:
            self.call(name, device, ctypes.byref(value))
        except Failed:
            return None
        return value

    def pids(self, device: Any) -> Optional[List[int]]:
        count = ctypes.c_uint(_MOST_PROCESSES)
        rows = (Process * _MOST_PROCESSES)()
        try:
            self.call("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(count), rows)
        except Failed:
            return None
        return [row.pid for row in rows[: min(count.value, _MOST_PROCESSES)]]


def devices(nvml: Nvml) -> List[Dict[str, Any]]:
    count = nvml.number("nvmlDeviceGetCount_v2") or 0
    found: List[Dict[str, Any]] = []
    handles: List[Any] = []
    for index in range(min(count, _MOST_DEVICES)):
        handle = ctypes.c_void_p()
        nvml.lost = False
        row: Dict[str, Any] = {"index": index, "utilisation": [], "memory_utilisation": [], "power_mw": []}
        try:
            nvml.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            row.update(_constant_facts(nvml, handle))
            handles.append(None if nvml.lost else handle)
        except Failed as error:
            row["error"] = error.status
            handles.append(None)
        if nvml.lost:
            row["error"] = _LOST
        found.append(row)
    for sample in range(SAMPLES):
        if sample and any(handles):
            time.sleep(APART)
        for row, handle in zip(found, handles):
            if handle is not None:
                _sample(nvml, handle, row)
    return found


def _constant_facts(nvml: Nvml, device: Any) -> Dict[str, Any]:
    """What does not change between two samples."""
    memory = nvml.structure("nvmlDeviceGetMemoryInfo", device, Memory)
    pci = nvml.structure("nvmlDeviceGetPciInfo_v3", device, Pci)
    ecc = nvml.number(
        "nvmlDeviceGetTotalEccErrors",
        device,
        ctypes.c_uint(_UNCORRECTED),
        ctypes.c_uint(_SINCE_LOADED),
        kind=ctypes.c_ulonglong,
    )
    return {
        "bus": pci.bus.decode("ascii", "replace") if pci else None,
        "memory_total": memory.total if memory else None,
        "memory_used": memory.used if memory else None,
        "limit_mw": nvml.number("nvmlDeviceGetEnforcedPowerLimit", device),
        "ecc_uncorrected": ecc,
        "throttle": nvml.number("nvmlDeviceGetCurrentClocksThrottleReasons", device, kind=ctypes.c_ulonglong),
        "pids": nvml.pids(device),
    }


def _sample(nvml: Nvml, device: Any, row: Dict[str, Any]) -> None:
    use = nvml.structure("nvmlDeviceGetUtilizationRates", device, Utilisation)
    if use is not None:
        row["utilisation"].append(use.gpu)
        row["memory_utilisation"].append(use.memory)
    power = nvml.number("nvmlDeviceGetPowerUsage", device)
    if power is not None:
        row["power_mw"].append(power)


def read(path: str) -> Dict[str, Any]:
    """The whole document; with `error` where the library or the driver is not usable."""
    try:
        nvml = Nvml(path)
        nvml.call("nvmlInit_v2")
    except OSError as error:
        return {"error": f"cannot be loaded ({error})"}
    except Failed as error:
        return {"error": f"no driver (NVML {error})"}
    driver = ctypes.create_string_buffer(96)
    try:
        nvml.call("nvmlSystemGetDriverVersion", driver, ctypes.c_uint(len(driver)))
    except Failed:
        driver.value = b"?"
    document = {"driver": driver.value.decode("ascii", "replace"), "devices": devices(nvml)}
    nvml.call("nvmlShutdown")
    return document


if __name__ == "__main__":
    print(json.dumps(read(sys.argv[1])))
