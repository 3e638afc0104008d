"""Which printer a value belongs to, by the name of its type: `disable pretty-printer global gdbext;torch` switches one
group off, `gdbext-streams;handles` another."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Dict, Optional, Tuple

import gdb

from gdbext.inside_gdb.tensors.target_object import same_everywhere
from gdbext.knowledge.all_tensor_layouts import LAYOUTS
from gdbext.knowledge.runtimes.cuda_streams import EVENT_HOLDERS, HOLDERS, SPECIAL, STREAM_TYPE

_TENSOR_HOLDERS = (
    ("torch", r"at::(Tensor|TensorBase)|torch::stable::Tensor"),
    ("maps of tensors", r"(fastertransformer|turbomind|turbomind::core|tensorrt_llm::common)::TensorMap"),
)
_STREAM_HOLDERS = tuple(row.type for row in (*HOLDERS, *EVENT_HOLDERS) if row.type != ".*")
_INLINE = re.compile(r"(?<=::)_v1::")

GROUPS: Dict[str, Tuple[str, ...]] = {
    "gdbext": tuple(sorted({row.engine for row in LAYOUTS} | {name for name, _ in _TENSOR_HOLDERS})),
    "gdbext-streams": ("objects", "handles"),
}
"""By the name of the printer."""


@lru_cache(maxsize=8192)
def engine_of(type_name: str) -> Optional[str]:
    """The group of a tensor's type; None for the types that are none of ours."""
    name = _INLINE.sub("", type_name.split("<", 1)[0])
    for row in LAYOUTS:
        if re.fullmatch(row.type, name) and not row.interface:
            return row.engine
    return next((engine for engine, pattern in _TENSOR_HOLDERS if re.fullmatch(pattern, name)), None)


def _tensors(value: gdb.Value, kind: gdb.Type) -> Optional[str]:
    """The group of a value that may be a tensor."""
    name = kind.name or kind.tag
    return engine_of(name) if name else None


def _streams(value: gdb.Value, kind: gdb.Type) -> Optional[str]:
    """The group of a value that may be a stream: a stream object, or one of the handles that mean something by
    themselves."""
    if kind.code == gdb.TYPE_CODE_PTR:
        target = kind.target().strip_typedefs().unqualified()
        return "handles" if _is_stream_type(target.name or target.tag or "") and _special(value) else None
    return "objects" if _holds_stream(kind.name or kind.tag or "") else None


@lru_cache(maxsize=8192)
def _is_stream_type(name: str) -> bool:
    return bool(re.fullmatch(STREAM_TYPE, name))


@lru_cache(maxsize=8192)
def _holds_stream(name: str) -> bool:
    return any(re.fullmatch(row, same_everywhere(name)) for row in _STREAM_HOLDERS)


def _special(value: gdb.Value) -> bool:
    try:
        return int(value) in SPECIAL
    except (gdb.error, RuntimeError):  # optimised out, unreadable: gdb says so itself
        return False


GROUP_OF = {"gdbext": _tensors, "gdbext-streams": _streams}
"""None for a value of no group."""
