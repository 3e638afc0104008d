"""numpy's arrays by offsets, which are the same in numpy 1.26 and 2.4 (64-bit); dtypes by their numbers."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.row_kinds import EnumTable, Field, SequenceRow, StructRow, TensorLayout

_SOURCE = "ndarraytypes.h: PyArrayObject_fields, PyArray_Descr, NPY_TYPES; read so in arrays of numpy 1.26.4 and 2.4.6"

ARRAY, DESCRIPTOR = "PyArrayObject", "PyArray_Descr"
FIRST_OF_USERS = 256
"""NPY_USERDEF: types that a package has registered, such as those of ml_dtypes."""

STRUCTS: Tuple[StructRow, ...] = (
    StructRow(
        ARRAY,
        64,
        {
            "data": Field(16, "pointer"),
            "dimensions": Field(24, "numpy dimensions"),
            "strides": Field(24, "numpy strides"),
            "descr": Field(56, "pointer", to=DESCRIPTOR),
        },
        _SOURCE,
    ),
    StructRow("numpy dimensions", 16, {"nd": Field(0, "i32"), "first": Field(8, "pointer", to="i64")}, _SOURCE),
    StructRow("numpy strides", 24, {"nd": Field(0, "i32"), "first": Field(16, "pointer", to="i64")}, _SOURCE),
    StructRow(
        DESCRIPTOR,
        32,
        {
            "typeobj": Field(16, "pointer"),
            "byteorder": Field(26, "u8"),
            "type_num": Field(28, "i32"),
        },
        _SOURCE,
    ),
)

SEQUENCES: Tuple[SequenceRow, ...] = (SequenceRow("numpy (dimensions|strides)", "first", _SOURCE, count="nd"),)

_NUMBERS = (
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 int64 uint64 fp32 fp64 longdouble complex64 complex128 "
    "clongdouble object bytes str void datetime64 timedelta64 fp16"
)
DTYPES = EnumTable("numpy", {"NPY_NOTYPE": "invalid"}, _SOURCE, dict(enumerate(_NUMBERS.split())))

LAYOUTS: Tuple[TensorLayout, ...] = (
    TensorLayout(
        "numpy.ndarray",
        "numpy",
        ARRAY,
        _SOURCE,
        shape=("dimensions",),
        strides=("strides",),
        strides_unit="bytes",
        dtype=("descr.type_num",),
        data=("data",),
        dtypes="numpy",
        place_by_type=(("", "cpu"),),
    ),
)
