"""All engines, each with the parts that its folder has. A new engine is a folder, and its line here.

The tables that hold rows of every engine take them from these folders, part by part: a part is loaded with its table.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, Iterator, Mapping, Tuple

ENGINES: Mapping[str, str] = {
    "rtp_llm": "profile frames layouts checks timeouts builds",
    "vllm": "profile frames timeouts builds",
    "sglang": "profile frames checks timeouts builds",
    "tensorrt_llm": "profile frames layouts checks streams builds",
    "turbomind": "profile frames layouts checks streams builds",
    "fastertransformer": "profile frames layouts checks builds",
    "llama_cpp": "profile frames layouts checks builds",
    "mindspore": "profile layouts",
    "torch": "profile frames layouts checks timeouts streams",
    "mpi": "profile frames",
}
"""Folder: the parts in it. Most specific first, in every table: torch lies below several engines, MPI and NCCL below
torch."""


def parts(part: str) -> Iterator[ModuleType]:
    """This part of every engine that has it."""
    for engine, found in ENGINES.items():
        if part in found.split():
            yield import_module(f"{__package__}.{engine}.{part}")


def rows(part: str, table: str) -> Tuple[Any, ...]:
    """What the engines say under this name in this part."""
    return tuple(row for module in parts(part) for row in getattr(module, table, ()))
