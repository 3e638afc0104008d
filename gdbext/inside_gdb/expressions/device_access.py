"""The port of the tensor commands: `TensorNames`, and the device's memory as far as this debugger comes to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Optional, TypeVar, Union

import gdb

from gdbext.analysis.tensors.index import view_of
from gdbext.analysis.tensors.read_blocks import Read
from gdbext.capture.gpu_cores.gpu_core import GpuCore
from gdbext.commands.tensor_port import Description
from gdbext.inside_gdb.base import compat, memory
from gdbext.inside_gdb.calls.target_calls import Caller
from gdbext.inside_gdb.expressions.device_copy import DeviceCopy
from gdbext.inside_gdb.expressions.tensor_names import TensorNames
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo, TensorList, TensorMapInfo

T = TypeVar("T")
Described = Union[TensorInfo, TensorMapInfo]


class DeviceAccess:
    """One per gdb. Values on a GPU come from the GPU core that was named, from cuda-gdb, or by allowed calls."""

    def __init__(
        self,
        say: Callable[[str], None],
        rank_of: Callable[[gdb.Inferior], Optional[int]],
        gpu_core: Optional[GpuCore] = None,
    ) -> None:
        self._say, self._rank_of, self._gpu_core = say, rank_of, gpu_core
        self._access = TensorNames()

    def with_gpu_core(self, path: str) -> DeviceAccess:
        """The same, with the GPU's memory out of a GPU core file. Raises `GdbextError`."""
        return DeviceAccess(self._say, self._rank_of, GpuCore.open(path))

    def evaluate(self, expression: str, description: Description) -> Described:
        """What an expression is. Raises `GdbextError`."""
        found = self._access.evaluate(expression, description)
        if isinstance(found, TensorInfo):
            return self._reached(found)
        return replace(found, entries=tuple(map(self._reached, found.entries)))

    def describe(self, value: gdb.Value, name: str) -> Described:
        """What a value is. Raises `GdbextError`."""
        found = self._access.describe(value, name)
        return self._reached(found) if isinstance(found, TensorInfo) else found

    def in_frame(self, python: bool) -> TensorList:
        """Every tensor of the selected frame, or of the Python frames of the thread."""
        found = self._access.in_frame(python)
        return replace(found, tensors=tuple(map(self._reached, found.tensors)))

    def on_rank(self, number: int, body: Callable[[], T]) -> T:
        """Run `body` on another inferior."""
        return self._access.on_rank(number, body)

    def read_of(self, info: TensorInfo) -> Read:
        """How to read the values of a tensor. What it gives may raise `GdbextError` when a copy is refused."""
        if not _on_gpu(info):
            return self._access.read_of(info)
        if self._gpu_core is not None:
            return self._gpu_core.read
        if compat.has_cuda_device() or not self._may_copy():
            return self._access.read_of(info)
        view = view_of(info)
        reach = [(length - 1) * stride for length, stride in zip(view.shape, view.strides)]
        first = (view.origin + sum(min(0, step) for step in reach)) // view.dtype.per_unit
        last = (view.origin + sum(max(0, step) for step in reach)) // view.dtype.per_unit
        caller = Caller(self._say, self._rank_of(gdb.selected_inferior()))
        low, high = view.base + first * view.dtype.unit, view.base + (last + 1) * view.dtype.unit
        return DeviceCopy(caller, self._say, low, high).read

    def _reached(self, info: TensorInfo) -> TensorInfo:
        """Without the reason why its values cannot be read, where they can."""
        if info.unreadable and _on_gpu(info) and (self._gpu_core or compat.has_cuda_device() or self._may_copy()):
            return replace(info, unreadable=None)
        return info

    @staticmethod
    def _may_copy() -> bool:
        return memory.calls_allowed() and compat.kind_of(gdb.selected_inferior()) == compat.HAS_PROCESS


def _on_gpu(info: TensorInfo) -> bool:
    return not isinstance(info.where, Missing) and info.where.startswith("gpu")
