"""ggml_tensor, with debug information and without. Sources: ggml 0.25.3; offsets measured on x86-64."""

from typing import Tuple

from gdbext.knowledge.row_kinds import EnumTable, Field, GraphRow, ReleaseRow, StructRow, TensorLayout
from gdbext.knowledge.word_tables import numbered

_SOURCE = "ggml.h of ggml 0.25.3 (llama-cpp-python 0.3.36)"

_NUMBERS = numbered(
    "0=fp32 1=fp16 2=q4_0 3=q4_1 6=q5_0 7=q5_1 8=q8_0 9=q8_1 10=q2_k 11=q3_k 12=q4_k 13=q5_k 14=q6_k 15=q8_k "
    "16=iq2_xxs 17=iq2_xs 18=iq3_xxs 19=iq1_s 20=iq4_nl 21=iq3_s 22=iq2_s 23=iq4_xs 24=int8 25=int16 26=int32 27=int64 "
    "28=fp64 29=iq1_m 30=bf16 34=tq1_0 35=tq2_0 39=mxfp4 40=nvfp4 41=q1_0 42=q2_0"
)
"""Never renumbered: they stand in GGUF files."""

_PLAIN = {"F32": 0, "F16": 1, "I8": 24, "I16": 25, "I32": 26, "I64": 27, "F64": 28, "BF16": 30}

DTYPES = EnumTable(
    "ggml",
    {
        **{f"GGML_TYPE_{name}": _NUMBERS[number] for name, number in _PLAIN.items()},
        **{f"GGML_TYPE_{name.upper()}": name for number, name in _NUMBERS.items() if number not in _PLAIN.values()},
    },
    _SOURCE,
    _NUMBERS,
)

STRUCTS: Tuple[StructRow, ...] = (
    StructRow(
        "ggml_tensor",
        336,
        {
            "type": Field(0, "i32"),
            "buffer": Field(8, "pointer", to="ggml_backend_buffer"),
            "ne": Field(16, "i64", count=4),
            "nb": Field(48, "u64", count=4),
            "view_src": Field(232, "pointer", to="ggml_tensor"),
            "view_offs": Field(240, "u64"),
            "data": Field(248, "pointer"),
            "name": Field(256, "char", count=64),
        },
        f"{_SOURCE}; measured on x86-64",
    ),
    StructRow(
        "ggml_cgraph",
        48,  # of its first members; what follows is of no use here
        {
            "n_nodes": Field(4, "i32"),
            "n_leafs": Field(8, "i32"),
            "nodes": Field(16, "pointer", to="ggml_tensor*"),
            "leafs": Field(40, "pointer", to="ggml_tensor*"),
        },
        "ggml-impl.h of ggml 0.25.3 (llama-cpp-python 0.3.36); read so in ggml 0.13.1 (pywhispercpp 1.5.1)",
    ),
)

RELEASES: Tuple[ReleaseRow, ...] = (
    ReleaseRow(
        "ggml 0.13 to 0.25",
        ("ggml_new_tensor|ggml_backend_tensor_set",),
        STRUCTS,
        ("ggml_tensor",),
        f"{_SOURCE}; read so in ggml 0.13.1 (pywhispercpp 1.5.1)",
    ),
)

GRAPHS: Tuple[GraphRow, ...] = (
    GraphRow("ggml_cgraph", (("leafs", "n_leafs"), ("nodes", "n_nodes")), "name", "ggml-impl.h of ggml 0.25.3"),
)

LAYOUTS: Tuple[TensorLayout, ...] = (
    TensorLayout(
        "ggml_tensor",
        "llama.cpp",
        "ggml_tensor",
        _SOURCE,
        shape=("ne",),
        strides=("nb",),
        strides_unit="bytes",
        dtype=("type",),
        data=("data",),
        dtypes="ggml",
        name=("name",),
        reversed=True,
        parts=(("view_src", "view_src"),),
    ),
)
