"""Tensors in files that torch.save wrote, without torch and without unpickling: nothing in such a file is executed.

The archive is a zip file whose members are stored as they are; its pickle says which member is which tensor. The few
operations that torch writes are read; whatever else a pickle asks for becomes a thing that nobody knows.
"""

from __future__ import annotations

import struct
import zipfile
from typing import IO, Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from gdbext.knowledge.dtypes import DTYPES, DType
from gdbext.knowledge.dumps.torch_files import DICTIONARY, PARAMETER, STORAGES, TENSOR, TENSOR_WITH_TYPE, TYPES
from gdbext.model.plain_pickle import MOST_BYTES, Machine, NotPlain, operations

_MOST_MEMBERS = 200_000
_MOST_TENSORS = 100_000
_DEEPEST = 32
_LOCAL_HEADER = 30
_LONGEST_NAME = 200


class Name(NamedTuple):
    """A class or function that a pickle names."""

    text: str


class Storage(NamedTuple):
    type: str  # name of its class
    key: str  # the member with its bytes


class Unknown(NamedTuple):
    """What we do not make."""

    text: str


class StoredTensor(NamedTuple):
    """Where a tensor lies in the file. `strides` are in elements."""

    dtype: DType
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    start: int


class _Found(NamedTuple):
    storage: Storage
    offset: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    dtype: str


def tensors_in(file: IO[bytes]) -> Dict[str, Callable[[], StoredTensor]]:
    """The tensors by name (`layers.3.weight`; "" for a file that is one tensor), each to be looked up. Raises
    `ValueError` (`NotPlain` is one) for what is no such file."""
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        raise ValueError("it is not an archive of torch.save (before torch 1.6 that was another format)") from None
    members = archive.infolist()
    if len(members) > _MOST_MEMBERS:
        raise ValueError("too many members")
    pickles = [one for one in members if one.filename.endswith("/data.pkl")]
    if len(pickles) != 1 or pickles[0].file_size > MOST_BYTES:
        raise ValueError("it holds no data.pkl of torch.save")
    if any(one.compress_type != zipfile.ZIP_STORED for one in members):
        raise ValueError("its members are compressed, which torch.save does not do")
    root = pickles[0].filename[: -len("data.pkl")]
    order = next(
        (archive.read(one) for one in members if one.filename == f"{root}byteorder" and one.file_size < 16), b""
    )
    if order.strip() not in (b"", b"little"):
        raise ValueError("it was written on a big-endian machine")
    known = {one.filename[len(root) :]: one for one in members if one.filename.startswith(root)}
    found: Dict[str, _Found] = {}
    _collect(_Reader(archive.read(pickles[0]), _OPERATIONS).run(), "", found, 0)
    return {name: lambda one=one: _stored(file, one, known) for name, one in found.items()}  # type: ignore[misc]


def _collect(value: Any, name: str, found: Dict[str, _Found], depth: int) -> None:
    """Tensors in nested containers, by the path to them."""
    if isinstance(value, _Found):
        if len(found) < _MOST_TENSORS:
            found[name[:_LONGEST_NAME]] = value
        return
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif type(value) in (list, tuple):
        items = enumerate(value)
    if depth < _DEEPEST:
        for key, item in items:
            _collect(item, f"{name}.{key}" if name else str(key), found, depth + 1)


def _stored(file: IO[bytes], one: _Found, members: Dict[str, zipfile.ZipInfo]) -> StoredTensor:
    """Raises `ValueError` for a tensor that does not lie in its member."""
    dtype = DTYPES[TYPES[one.dtype] if one.dtype else STORAGES[one.storage.type]]
    member = members.get(f"data/{one.storage.key}")
    if member is None:
        raise ValueError(f"it has no data/{one.storage.key[:40]}")
    if len(one.shape) != len(one.strides) or len(one.shape) > 64 or min((*one.shape, *one.strides, one.offset, 0)) < 0:
        raise ValueError("a malformed shape")
    last = one.offset + sum((size - 1) * stride for size, stride in zip(one.shape, one.strides))
    if 0 not in one.shape and dtype.nbytes(last + 1) > member.file_size:
        raise ValueError("a tensor that is larger than its data")
    file.seek(member.header_offset)
    header = file.read(_LOCAL_HEADER)
    if len(header) != _LOCAL_HEADER or header[:4] != b"PK\3\4":
        raise ValueError("a damaged archive")
    name_length, extra_length = struct.unpack("<HH", header[26:30])
    start = member.header_offset + _LOCAL_HEADER + name_length + extra_length + dtype.nbytes(one.offset)
    return StoredTensor(dtype, one.shape, one.strides, start)


class _Reader(Machine):
    """The operations that torch writes besides plain data."""

    def named(self) -> None:
        self.push(Name(f"{self.line()} {self.line()}"))

    def named_on_stack(self) -> None:
        name, module = self.pop(), self.pop()
        self.push(Name(f"{module} {name}"[:_LONGEST_NAME]))

    def stored(self) -> None:
        """A persistent id: ("storage", class, key, device, count)."""
        said = self.pop()
        if type(said) is not tuple or len(said) < 5 or said[0] != "storage" or not isinstance(said[1], Name):
            raise NotPlain("an id that torch does not write")
        self.push(Storage(said[1].text.rpartition(" ")[2], str(said[2])[:_LONGEST_NAME]))

    def called(self) -> None:
        said, function = self.pop(), self.pop()
        self.push(_made(function, said))

    def built(self) -> None:
        """The state of an object: of one that nobody knows nothing is kept; a dictionary's attributes are no items."""
        self.pop()


def _made(function: Any, said: Any) -> Any:
    text = function.text if isinstance(function, Name) else ""
    if text == DICTIONARY:
        return {}
    if text in (TENSOR, TENSOR_WITH_TYPE) and type(said) is tuple and len(said) >= 4 and isinstance(said[0], Storage):
        typed = said[6] if text == TENSOR_WITH_TYPE and len(said) > 6 else None
        dtype = typed.text.rpartition(" ")[2] if isinstance(typed, Name) else ""
        if (TYPES.get(dtype) if dtype else STORAGES.get(said[0].type)) is None:
            return Unknown(dtype or said[0].type)
        return _Found(said[0], _whole(said[1]), _numbers(said[2]), _numbers(said[3]), dtype)
    if text == PARAMETER and type(said) is tuple and said:
        return said[0]
    return Unknown(text)


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 60:
        raise NotPlain("a malformed number")
    return value


def _numbers(values: Any) -> Tuple[int, ...]:
    if type(values) is not tuple:
        raise NotPlain("a malformed shape")
    return tuple(map(_whole, values))


_OPERATIONS = {
    **operations(),
    ord("c"): _Reader.named,
    0x93: _Reader.named_on_stack,
    ord("Q"): _Reader.stored,
    ord("R"): _Reader.called,
    0x81: _Reader.called,
    ord("b"): _Reader.built,
}


def one_of(
    found: Dict[str, Callable[[], StoredTensor]], name: Optional[str]
) -> Tuple[List[str], Optional[StoredTensor]]:
    """All names, and the tensor of this one (of the only one, without a name)."""
    names = list(found)
    wanted = names[0] if name is None and len(names) == 1 else name
    return names, found[wanted]() if wanted is not None and wanted in found else None
