"""Where libstdc++'s containers have their members (GCC 5 to 15, x86-64), for libraries without debug information.

The names are those of the members, so that the rows of `knowledge/runtimes/std_containers.py` lead through them.
"""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.row_kinds import Field, StructRow

_SOURCE = "libstdc++ headers; measured by compiling them with GCC 12"

VECTOR = "std::vector<unsigned long>"
SIGNED_VECTOR = "std::vector<long>"
STRING = "std::string"
HOLDER = "std::shared_ptr<void>"


def _vector(id: str, item: str) -> Tuple[StructRow, ...]:
    inner = id.replace("std::vector", "std::_Vector_impl", 1)
    return (
        StructRow(id, 24, {"_M_impl": Field(0, inner)}, _SOURCE, arguments=(item,)),
        StructRow(
            inner,
            24,
            {
                "_M_start": Field(0, "pointer", to=item),
                "_M_finish": Field(8, "pointer", to=item),
                "_M_end_of_storage": Field(16, "pointer", to=item),
            },
            _SOURCE,
        ),
    )


def _shared(id: str, held: str) -> StructRow:
    fields = {"_M_ptr": Field(0, "pointer", to=held), "_M_refcount": Field(8, "pointer")}
    return StructRow(id, 16, fields, _SOURCE, arguments=(held,))


PLAIN: Tuple[StructRow, ...] = (
    *_vector(VECTOR, "u64"),
    *_vector(SIGNED_VECTOR, "i64"),
    _shared(HOLDER, ""),
    StructRow(STRING, 32, {"_M_p": Field(0, "pointer"), "_M_string_length": Field(8, "u64")}, _SOURCE),
    StructRow("std::_Hash_node_base", 8, {"_M_nxt": Field(0, "pointer")}, _SOURCE),
    StructRow(
        "std::_Hashtable",
        56,
        {
            "_M_buckets": Field(0, "pointer"),
            "_M_bucket_count": Field(8, "u64"),
            "_M_before_begin": Field(16, "std::_Hash_node_base"),
            "_M_element_count": Field(24, "u64"),
            "_M_max_load_factor": Field(32, "u32"),
        },
        _SOURCE,
    ),
)
"""Containers of numbers, and what others are made of."""


def containers_of(item: str) -> Tuple[StructRow, ...]:
    """The containers and smart pointers that hold objects of a type."""
    return (*_containers(item), *shared_containers_of(item))


def shared_containers_of(item: str) -> Tuple[StructRow, ...]:
    """The smart pointer to an object of a type, and the containers of these."""
    shared = f"std::shared_ptr<{item}>"
    return (_shared(shared, item), *_containers(shared))


def _containers(item: str) -> Tuple[StructRow, ...]:
    hashed = {"_M_h": Field(0, "std::_Hashtable")}
    return (
        *_vector(f"std::vector<{item}>", item),
        StructRow(map_of(item), 56, hashed, _SOURCE, arguments=(STRING, item)),
    )


def map_of(value: str) -> str:
    """The name of a hash map by strings."""
    return f"std::unordered_map<{STRING}, {value}>"
