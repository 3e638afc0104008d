"""Tensors in files: `.npy` and `.safetensors` written from foreign memory; these and torch's `.pt` read to compare.

Formats: numpy.lib.format (NPY 1.0 to 3.0); the safetensors README. Neither needs numpy, neither can run code.
"""

from __future__ import annotations

import ast
import json
import os
import struct
import warnings
from array import array
from typing import IO, Any, BinaryIO, Callable, ContextManager, Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.tensors.decoding import decode
from gdbext.analysis.tensors.index import View, contiguous, position_of, select, view_of
from gdbext.analysis.tensors.read_blocks import Limits, Read, Stream
from gdbext.analysis.tensors.torch_file import one_of, tensors_in
from gdbext.analysis.tensors.whole_tensor import Progress, no_progress
from gdbext.knowledge.dtypes import DTYPES, DType
from gdbext.model.errors import GdbextError, UsageError, refused_as
from gdbext.model.tensor import TensorInfo, TensorSaved

NPY: Dict[str, str] = {
    "bool": "|b1",
    "int8": "|i1",
    "uint8": "|u1",
    **{f"{kind}{bits}": f"<{kind[0]}{bits // 8}" for kind in ("int", "uint") for bits in (16, 32, 64)},
    "fp16": "<f2",
    "fp32": "<f4",
    "fp64": "<f8",
    "complex64": "<c8",
    "complex128": "<c16",
}
SAFETENSORS: Dict[str, str] = {
    "bool": "BOOL",
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
    "fp16": "F16",
    "bf16": "BF16",
    "fp32": "F32",
    "fp64": "F64",
    "complex64": "C64",
    "fp8_e4m3fn": "F8_E4M3",
    "fp8_e5m2": "F8_E5M2",
    "fp8_e8m0": "F8_E8M0",
}
"""Element types by the words of the two formats."""

_LONGEST_HEADER = 1 << 20
Create = Callable[[str], ContextManager[BinaryIO]]
_MAGIC = b"\x93NUMPY"
_FILE_BASE = 1 << 20  # where the first byte of a file lies in the memory that a saved tensor pretends to have


def save(
    info: TensorInfo,
    read: Read,
    path: str,
    create: Create,
    index: str = "",
    progress: Progress = no_progress,
    limits: Optional[Limits] = None,
) -> TensorSaved:
    """Write what `index` selects to a new file whose name says the format. A type that the format lacks is widened
    without loss (said in `notes`). `create` gives a file that gets its name when it is whole.

    Raises what `create` raises, and `GdbextError` when not all elements can be read.
    """
    view = select(view_of(info), index)
    form = _format_of(path)
    stored = _stored_type(view.dtype, NPY if form == "npy" else SAFETENSORS, form)
    header = _npy_header(stored, view.shape) if form == "npy" else _safetensors_header(info, stored, view)
    with create(path) as file:
        file.write(header)
        _write_elements(file, Stream(view, read, limits), stored, progress)
        file.flush()
        os.fsync(file.fileno())
        nbytes = file.tell()
    notes = () if stored == view.dtype else (f"{view.dtype.name} is written as {stored.name}, every value exactly",)
    return TensorSaved(info=info, path=path, nbytes=nbytes, format=form, index=index.strip(), notes=notes)


def _format_of(path: str) -> str:
    for form in ("npy", "safetensors"):
        if path.endswith(f".{form}"):
            return form
    raise UsageError(f"{path}: unknown format", "end the name in .npy or .safetensors")


def _form_to_read(path: str) -> str:
    return "pt" if path.endswith((".pt", ".pth")) else _format_of(path)


def _stored_type(dtype: DType, known: Dict[str, str], form: str) -> DType:
    """The dtype itself if the format has it, else the smallest that holds all its values."""
    dtype = decode.element_type(dtype)
    if dtype.name in known:
        return dtype
    wider = {"int": "int8", "uint": "uint8", "float": "fp32", "complex": "complex64"}[dtype.kind]
    if dtype.bits > DTYPES[wider].bits:
        raise GdbextError(f"{form} files have no {dtype.name}", "save as .npy")
    return DTYPES[wider]


def _npy_header(dtype: DType, shape: Sequence[int]) -> bytes:
    text = repr({"descr": NPY[dtype.name], "fortran_order": False, "shape": tuple(shape)})
    room = len(_MAGIC) + 4 + len(text) + 1
    text += " " * (-room % 64) + "\n"
    return _MAGIC + b"\1\0" + struct.pack("<H", len(text)) + text.encode()


def _safetensors_header(info: TensorInfo, dtype: DType, view: View) -> bytes:
    entry = {"dtype": SAFETENSORS[dtype.name], "shape": list(view.shape), "data_offsets": [0, dtype.nbytes(view.count)]}
    text = json.dumps({"tensor": entry, "__metadata__": {"name": info.name, "by": "gdbext"}})
    text += " " * (-len(text.encode()) % 8)
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _write_elements(file: IO[bytes], stream: Stream, stored: DType, progress: Progress) -> None:
    dtype = decode.element_type(stream.view.dtype)
    for chunk in stream:
        if chunk.holes:
            at = position_of(chunk.start + chunk.holes.index(1), stream.view.shape)
            raise GdbextError(f"not saved: element {list(at)} is unreadable", "save a part by an index")
        file.write(chunk.data if stored == dtype else _widened(chunk.data, dtype, stored))
        progress(chunk.start + chunk.length, stream.total)
    if stream.problem:
        raise GdbextError(f"not saved: {stream.problem}")


def _widened(data: bytes, dtype: DType, stored: DType) -> bytes:
    numbers = decode.values(data, dtype)
    if stored.kind == "complex":
        return array("f", (part for number in numbers for part in (number.real, number.imag))).tobytes()
    return array(decode.ARRAY_CODES[stored.name], numbers).tobytes()


_NOT_A_FILE = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RecursionError, SyntaxError, TypeError),
    *(ValueError, struct.error),
)
"""What reading a header out of arbitrary bytes can end in."""


class SavedTensor:
    """A tensor in a file: `info` and `read` as those of one in memory. Close it, or use it in a `with`."""

    def __init__(self, path: str, like: Optional[str] = None, name: Optional[str] = None) -> None:
        """`like` is the dtype that raw bytes (`V2` of other writers' bf16) are taken for; `name` chooses among the
        tensors of a safetensors file. Raises `GdbextError` for what is no such file, or cut short."""
        with refused_as(f"cannot read {path}"):
            self._file = open(path, "rb")  # noqa: SIM115 - it lives as long as we do
        try:
            form = _form_to_read(path)
            dtype, shape, strides, start = _LOADERS[form](self._file, path, like, name)
            if form != "pt":  # there each tensor is checked against its own member
                _check_size(self._file, path, dtype, shape, start)
        except _NOT_A_FILE as error:
            self.close()
            raise GdbextError(f"{path} is not a file of tensors that gdbext can read ({error})") from None
        except BaseException:
            self.close()
            raise
        self.info = TensorInfo(
            name=path,
            kind=form,
            dtype=dtype.name,
            shape=shape,
            strides=None if strides == contiguous(shape) else strides,
            where="file",
            address=_FILE_BASE + start,
            nbytes=os.fstat(self._file.fileno()).st_size - start,
        )

    def read(self, address: int, size: int) -> Optional[bytes]:
        """Bytes of the file, as a debugger reads memory."""
        if address < _FILE_BASE:
            return None
        data = os.pread(self._file.fileno(), size, address - _FILE_BASE)
        return data if len(data) == size else None

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> SavedTensor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_Loaded = Tuple[DType, Tuple[int, ...], Tuple[int, ...], int]
"""dtype, shape, strides in elements, and where in the file the first element stands."""


def _load_npy(file: IO[bytes], path: str, like: Optional[str], name: Optional[str]) -> _Loaded:
    start = file.read(8)
    if start[:6] != _MAGIC:
        raise ValueError("it does not begin as .npy does")
    width, code = (2, "<H") if start[6] == 1 else (4, "<I")
    (length,) = struct.unpack(code, file.read(width))
    if length > _LONGEST_HEADER:
        raise ValueError("its header is too long")
    with warnings.catch_warnings():  # about odd escapes in what is no header
        warnings.simplefilter("ignore")
        header = ast.literal_eval(file.read(length).decode("utf-8"))
    shape = _shape(header["shape"])
    dtype = _npy_type(header["descr"], like)
    strides = contiguous(shape[::-1])[::-1] if header["fortran_order"] else contiguous(shape)
    return dtype, shape, strides, 8 + width + length


def _npy_type(descr: Any, like: Optional[str]) -> DType:
    for name, known in NPY.items():
        if descr == known or (isinstance(descr, str) and descr == known.replace("|", "<")):
            return DTYPES[name]
    row = DTYPES.get(like or "")
    if row is not None and row.per_unit == 1 and descr in (f"|V{row.unit}", f"<V{row.unit}"):
        return row
    raise ValueError(f"element type {str(descr)[:40]!r}")


def _load_safetensors(file: IO[bytes], path: str, like: Optional[str], name: Optional[str]) -> _Loaded:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > 100 * _LONGEST_HEADER:
        raise ValueError("its header is too long")
    header = json.loads(file.read(length).decode("utf-8"))
    names: List[str] = [key for key in header if key != "__metadata__"]
    if (name is None and len(names) != 1) or (name is not None and name not in names):
        raise _choice(path, names, name)
    entry = header[name if name is not None else names[0]]
    found = [ours for ours, word in SAFETENSORS.items() if word == entry["dtype"]]
    if not found:
        raise ValueError(f"element type {str(entry['dtype'])[:40]!r}")
    shape = _shape(entry["shape"])
    return DTYPES[found[0]], shape, contiguous(shape), 8 + length + int(entry["data_offsets"][0])


def _load_torch(file: IO[bytes], path: str, like: Optional[str], name: Optional[str]) -> _Loaded:
    names, found = one_of(tensors_in(file), name)
    if not names:
        raise ValueError("it holds no tensor")
    if found is None:
        raise _choice(path, names, name)
    return found.dtype, found.shape, found.strides, found.start


_LOADERS: Dict[str, Callable[[IO[bytes], str, Optional[str], Optional[str]], _Loaded]] = {
    "npy": _load_npy,
    "safetensors": _load_safetensors,
    "pt": _load_torch,
}


def _choice(path: str, names: Sequence[str], name: Optional[str]) -> UsageError:
    some = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    what = f"{path} holds {len(names)} tensors" if name is None else f"{path} holds no tensor {name}"
    return UsageError(what, f"name one of them, {path}:NAME: {some}")


def _shape(numbers: Any) -> Tuple[int, ...]:
    shape = tuple(numbers)
    if len(shape) > 64 or not all(type(number) is int and number >= 0 for number in shape):
        raise ValueError(f"shape {str(shape)[:60]}")
    return shape


def _check_size(file: IO[bytes], path: str, dtype: DType, shape: Tuple[int, ...], start: int) -> None:
    """A file that is shorter than it says is said to be, once, instead of unreadable elements later."""
    view = View(dtype, _FILE_BASE + start, shape, contiguous(shape))
    size = os.fstat(file.fileno()).st_size
    if start < 0 or start + dtype.nbytes(view.count) > size:
        raise GdbextError(f"{path} is cut short: {size:,} bytes for shape {list(shape)} of {dtype.name}")
