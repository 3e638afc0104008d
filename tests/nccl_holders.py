"""Processes of ours that map a real libnccl, without a GPU, and hold memory with the shape of its communicators."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import List, Mapping, Sequence, Tuple

from gdbext.knowledge.runtimes.nccl import COUNTED, MAGIC
from tests.gdb.gdbrun import Target, gdb_batch

HASH = 0x7C1E55AA12345678
_WIDTHS = {
    **dict.fromkeys(("startMagic", "endMagic", "commHash", "busId"), "8"),
    **dict.fromkeys(("rank", "nRanks", "cudaDev", "localRank", "asyncResult", "initState"), "4"),
    **dict.fromkeys(("destroyFlag", "revokedFlag"), "4"),
    "finalizeCalled": "1",
    "abortFlag": "p",
}

Shape = Tuple[int, Mapping[str, int]]
"""Size of ncclComm, and offsets of its members."""


def real_library() -> str:
    """libnccl of the wheel that the tests install; $GDBEXT_NCCL names another one, to run them by hand on it."""
    chosen = os.environ.get("GDBEXT_NCCL")
    places = [Path(place) / "nvidia/nccl/lib/libnccl.so.2" for place in sys.path]
    found = [chosen] if chosen else [str(place) for place in places if place.exists()]
    assert found, "no libnccl: `scripts/install test` installs a wheel of NVIDIA's"
    return found[0]


def shape_by_gdb(library: str, gdb: str) -> Shape:
    """As gdb reads it from the library's debug information, not by our reader."""
    script = f"""
for name in {[*_WIDTHS, "seqNumber"]!r}:
    try:
        print(name, int(gdb.parse_and_eval("(long)&((struct ncclComm*)0)->" + name)))
    except gdb.error:
        pass
"""
    words = [f"file {library}", 'printf "size %d\\n", sizeof(struct ncclComm)', f"python exec({script!r})"]
    out = gdb_batch(gdb, *words, source=None).out
    found = {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", out, re.MULTILINE)}
    return found.pop("size"), found


def block(shape: Shape, where: str, counts: Sequence[int] = (), **values: int) -> List[str]:
    """Arguments of nccl_holder for one block."""
    size, offsets = shape
    wanted = {"startMagic": MAGIC, "endMagic": MAGIC, "commHash": HASH, "busId": 0x3B000, "abortFlag": 0, **values}
    words = [str(size), where]
    words += [f"{offsets[name]}:{_WIDTHS[name]}:{value}" for name, value in wanted.items() if name in offsets]
    if "seqNumber" in offsets:
        words += [f"{offsets['seqNumber'] + 8 * at}:8:{count}" for at, count in zip(range(len(COUNTED)), counts)]
    return words


class Holder(Target):
    """One rank that holds these blocks; `addresses` says where."""

    def __init__(self, rank: int, world_size: int, library: str, *blocks: Sequence[str]) -> None:
        words = [library]
        for number, one in enumerate(blocks):
            words += [*(["/"] if number else []), *one]
        environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world_size)}
        super().__init__(*words, source="nccl_holder.c", flags=("-g", "-O0"), env=environment)
        self._blocks = len(blocks)
        self.addresses: List[int] = []

    def __enter__(self) -> Holder:
        self.addresses = [int(self._process.stdout.readline(), 16) for _ in range(self._blocks)]
        super().__enter__()
        return self
