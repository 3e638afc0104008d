"""torch tensors behind Python objects: from a PyObject* to the TensorImpl, without symbols of the interpreter."""

from __future__ import annotations

from typing import Optional

from gdbext.inside_gdb.tensors.target_object import Read, Unreadable, unpack_integers
from gdbext.inside_gdb.tensors.torch_offsets import Release, key_of
from gdbext.knowledge.engines.torch.layouts import THPVARIABLE
from gdbext.knowledge.runtimes.cpython import OBJECT_TYPE, TYPE_NAME

PYTHON_TYPES = ("PyObject", "_object", "THPVariable")
_TYPE_BASE = 256  # tp_base: PyTypeObject has not changed in front of it from 3.8 to 3.14 (64-bit, with the GIL)
BASE_NAMES = ("torch._C.TensorBase", "torch._C._TensorBase", "TensorBase", "_TensorBase")
_MOST_BASES = 32
_LONGEST_NAME = 256


def tensor_of(address: int, read: Read, release: Optional[Release]) -> int:
    """Address of the TensorImpl of a torch.Tensor (or of an instance of a derived class). Raises `Unreadable`."""
    kind = _word(read, address + OBJECT_TYPE)
    name = _type_name(read, kind)
    if not _is_tensor(read, kind):
        raise Unreadable(f"the Python object at {address:#x} is of type {name or 'unknown'}, not a torch tensor")
    offset = _offset(release)
    tensor = _word(read, address + offset)
    if not tensor:
        raise Unreadable(f"the {name} at {address:#x} has no tensor any more")
    return tensor


def _offset(release: Optional[Release]) -> int:
    """Where the TensorImpl* stands; without a known release as in the newest ones."""
    known = key_of(release.short) if release is not None and release.number else None
    for first, offset in THPVARIABLE:
        if known is None or not first or known >= key_of(first):
            return offset
    return THPVARIABLE[0][1]


def _is_tensor(read: Read, kind: int) -> bool:
    for _ in range(_MOST_BASES):
        if not kind:
            return False
        if _type_name(read, kind) in BASE_NAMES:
            return True
        kind = _word(read, kind + _TYPE_BASE)
    return False


def _type_name(read: Read, kind: int) -> str:
    place = _word(read, kind + TYPE_NAME)
    for size in (_LONGEST_NAME, 64, 16):
        data = read(place, size)
        if data is not None:
            return data.split(b"\0", 1)[0].decode("utf-8", "replace")[:64]
    return ""


def _word(read: Read, address: int) -> int:
    data = read(address, 8)
    if data is None:
        raise Unreadable(f"no Python object: unreadable memory at {address:#x}")
    return unpack_integers(data, 8, False)[0]
