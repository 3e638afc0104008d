"""numpy where there is one: never needed, asked for when large data is at hand."""

from __future__ import annotations

import functools
import importlib
import signal
from typing import Any

from gdbext.analysis.tensors.decoding import decode
from gdbext.analysis.tensors.decoding.small_floats import byte_table
from gdbext.knowledge.dtypes import DTYPES, DType

_NATIVE = {
    "fp16": "<f2",
    "fp32": "<f4",
    "fp64": "<f8",
    "complex64": "<c8",
    "complex128": "<c16",
    **{f"{kind}{bits}": f"<{kind[0]}{bits // 8}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}


@functools.lru_cache(maxsize=None)
def load_numpy() -> Any:
    """The numpy of this interpreter, or None. Its threads start with all signals blocked: inside gdb they must not
    receive those that gdb waits for."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        return importlib.import_module("numpy")
    except Exception:  # noqa: BLE001 - a numpy of another Python or half an installation fails in many ways
        return None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def as_array(data: bytes, dtype: DType, numpy: Any) -> Any:
    """Elements (see `decode`) as a numpy array that holds their exact values."""
    dtype = decode.element_type(dtype)
    native = _NATIVE.get(dtype.name)
    if native:
        return numpy.frombuffer(data, native)
    if dtype.name == "bf16":
        return (numpy.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    if dtype.kind == "complex":  # of two fp16 or bf16
        return as_array(data, DTYPES[dtype.part or ""], numpy).astype("<f4").view("<c8")
    kind = {"float": "<f8", "bool": "?"}.get(dtype.kind, "<i2")  # no small type has values outside of these
    return numpy.array(byte_table(dtype.name), kind)[numpy.frombuffer(data, "u1")]
