"""Which Python objects are tensors, torch's and numpy's, and what they say of themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, Optional, Union

from gdbext.capture.python.attributes import Attributes
from gdbext.inside_gdb.tensors import shapes
from gdbext.inside_gdb.tensors.member_paths import integer, integers
from gdbext.inside_gdb.tensors.python_objects import BASE_NAMES, tensor_of
from gdbext.inside_gdb.tensors.target_object import Node, Read, StructNode, Unreadable
from gdbext.inside_gdb.tensors.torch_offsets import Release, tensor_at
from gdbext.knowledge.all_tensor_layouts import STRUCTS
from gdbext.knowledge.dtypes import dtype_named
from gdbext.knowledge.runtimes.cpython import TYPE_NAME
from gdbext.knowledge.runtimes.numpy_arrays import ARRAY, FIRST_OF_USERS, LAYOUTS
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo, TensorMapInfo

_ARRAYS = ("numpy.ndarray",)
_ROWS = {row.id: row for row in STRUCTS}
_LAYOUT = LAYOUTS[0]
_BIG_ENDIAN = ord(">")
Describe = Callable[[Node, str, str], Union[TensorInfo, TensorMapInfo]]
"""A tensor's node, its name, and what its kind should say of how it was read."""


@dataclass(frozen=True)
class PythonTensors:
    """The tensors among the objects of one process."""

    objects: Attributes
    read: Read
    release: Optional[Release]
    describe: Describe
    finish: Callable[[TensorInfo], TensorInfo]  # fills in what follows from dtype, shape and address

    def is_tensor(self, address: int) -> bool:
        """Whether an object is an instance of a tensor's class, or of one derived of it."""
        return bool(self._base(address))

    def _base(self, address: int) -> str:
        one = self.objects.class_of(address)
        order = self.objects.order_of(one) if one is not None else ()
        return next((base.full_name for base in order if base.full_name in BASE_NAMES + _ARRAYS), "")

    def info(self, address: int, name: str) -> TensorInfo:
        """What the tensor at an address says; of one that cannot be read, why."""
        try:
            found = self._array(address, name) if self._base(address) in _ARRAYS else self._torch(address, name)
        except Unreadable as error:
            missing = Missing(str(error))
            return TensorInfo(name=name, dtype=missing, shape=missing, where=missing, address=missing)
        assert isinstance(found, TensorInfo)
        return found

    def _torch(self, address: int, name: str) -> Union[TensorInfo, TensorMapInfo]:
        node, note = tensor_at(tensor_of(address, self.read, self.release), self.read, self.release)
        return self.describe(node, name, note)

    def _array(self, address: int, name: str) -> Union[TensorInfo, TensorMapInfo]:
        node = StructNode(address, _ROWS[ARRAY], _ROWS, self.read)
        info = self.describe(node, name, "")
        assert isinstance(info, TensorInfo)
        if integer(node, ("descr.byteorder",)) == _BIG_ENDIAN:
            return replace(info, dtype=Missing("big-endian elements, which are not decoded"), strides=None)
        if integer(node, ("descr.type_num",)) >= FIRST_OF_USERS:
            return self._of_users_type(node, info)
        return info

    def _of_users_type(self, node: StructNode, info: TensorInfo) -> TensorInfo:
        """A dtype that a package has registered: by the name of its scalars."""
        place = self.read(integer(node, ("descr.typeobj",)) + TYPE_NAME, 8)
        text = self.read(int.from_bytes(place, "little"), 32) if place else None
        said = (text or b"").split(b"\0", 1)[0].decode("latin-1").rpartition(".")[2]
        row = dtype_named(said)
        if row is None:
            return replace(info, dtype=Missing(f"elements of the type {said or '?'}"))
        strides = shapes.in_elements(integers(node, "strides"), row.name)
        known = replace(info, dtype=row.name, problems=(), strides=None if isinstance(strides, Missing) else strides)
        return self.finish(shapes.ordered(_LAYOUT, known))
