"""Where NCCL keeps what in a communicator (`struct ncclComm`), by release, for libraries without debug information.

Read from the debug information of the wheels on PyPI; `scripts/nccl-rows --check RELEASE...` reads it again and
compares. Releases that were not read have no row: offsets shift between any two of them.
"""

from __future__ import annotations

from typing import Dict, Iterator, Mapping, Tuple

from gdbext.knowledge.row_kinds import Field, StructRow

STRUCT = "ncclComm"

MAGIC = 0x0280028002800280
"""At both ends of a communicator since 2.21 (comm.h); zero once it was freed (commPoison in init.cc)."""

COUNTED = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")
"""What `seqNumber` counts, in its order (ncclFunc_t; five entries in every release from 2.23.4 to 2.32.3)."""

NO_COUNTS = "this release of NCCL does not count collectives (2.23.4 and newer do)"

RESULTS: Mapping[int, str] = {
    0: "ncclSuccess",
    1: "ncclUnhandledCudaError",
    2: "ncclSystemError",
    3: "ncclInternalError",
    4: "ncclInvalidArgument",
    5: "ncclInvalidUsage",
    6: "ncclRemoteError",
    7: "ncclInProgress",
    8: "ncclTimeout",  # 2.32.3; not in 2.27.3
}
"""ncclResult_t of nccl.h."""

FIELDS: Mapping[str, Field] = {
    "startMagic": Field(0, "u64"),
    "commHash": Field(0, "u64"),
    "rank": Field(0, "i32"),
    "nRanks": Field(0, "i32"),
    "cudaDev": Field(0, "i32"),
    "busId": Field(0, "i64"),
    "localRank": Field(0, "i32"),
    "asyncResult": Field(0, "i32"),
    "abortFlag": Field(0, "pointer", to="u32"),
    "destroyFlag": Field(0, "u32"),
    "revokedFlag": Field(0, "u32"),
    "initState": Field(0, "i32"),
    "finalizeCalled": Field(0, "u8"),
    "seqNumber": Field(0, "u64", count=len(COUNTED)),
    "endMagic": Field(0, "u64"),
}
"""The members that we read and their types, the same in all releases. Not opCount: it counts plans with proxy work."""

# First and last release with this layout, the wheels (nvidia-nccl-cu12, ...), the size, whether both magic words are
# there, and offsets. In all of them rank, nRanks and cudaDev lie 8, 12 and 16 bytes behind commHash, finalizeCalled 4
# behind initState, startMagic at 0 and endMagic in the last 8 bytes.
_TABLE = """
first   last    wheels    size    magic commHash busId   localRank asyncResult abortFlag destroyFlag revokedFlag initState seqNumber
2.18.1  2.18.1  cu12      11128   no    9168     9200    9348      10512       10520     -           -           11112     -
2.19.3  2.19.3  cu12      11600   no    9424     9464    9612      10836       10840     -           -           11536     -
2.20.5  2.20.5  cu12      13152   no    10448    10488   10636     11868       11872     -           -           12584     -
2.21.5  2.21.5  cu11      16280   yes   13528    13568   13716     14972       14976     -           -           15696     -
2.21.5  2.21.5  cu12      16288   yes   13528    13568   13716     14972       14976     -           -           15704     -
2.22.3  2.22.3  cu12      219520  yes   213576   213616  213772    215028      215032    215072      -           218928    -
2.23.4  2.23.4  cu12      253152  yes   246944   246984  247140    248552      248560    248600      -           252512    252568
2.24.3  2.24.3  cu12      252624  yes   246944   246984  247140    248500      248504    248544      -           252480    252536
2.25.1  2.25.1  cu12      501072  yes   492704   492744  492900    494388      494392    494432      -           500928    500984
2.26.2  2.26.5  cu12      506752  yes   492720   492760  492916    494404      494408    494448      -           500952    501008
2.27.3  2.27.7  cu12      1080320 yes   1066160  1066200 1066356   1067844     1067848   1067888     -           1074456   1074512
2.28.3  2.28.3  cu12      1081816 yes   1066176  1066216 1066372   1069036     1069040   1069080     -           1075664   1075720
2.28.7  2.28.9  cu12,cu13 1082968 yes   1066184  1066224 1066380   1069044     1069048   1069088     1069092     1075672   1075728
2.29.3  2.29.3  cu12      1084808 yes   1066704  1066744 1066900   1069564     1069568   1069608     1069612     1076800   1076856
2.29.7  2.29.7  cu12      1199592 yes   1181392  1181432 1181588   1184252     1184256   1184296     1184300     1191488   1191544
2.30.4  2.30.4  cu12      1199728 yes   1181400  1181440 1181596   1184276     1184280   1184320     1184324     1191504   1191560
2.30.7  2.30.7  cu12      1199744 yes   1181416  1181456 1181612   1184292     1184296   1184336     1184340     1191520   1191576
2.31.2  2.31.2  cu12      1196464 yes   1181408  1181448 1181604   1185136     1185144   1185184     1185188     1193720   1193776
2.32.3  2.32.3  cu12      1196536 yes   1181408  1181448 1181616   1185144     1185152   1185192     1185196     1193744   1193800
"""  # noqa: E501


def struct_row(size: int, offsets: Mapping[str, int], source: str, releases: Tuple[str, str] = ("", "")) -> StructRow:
    """A row of the members in `FIELDS` that have an offset."""
    fields = {
        name: Field(offsets[name], kind.type, kind.to, kind.count) for name, kind in FIELDS.items() if name in offsets
    }
    return StructRow(STRUCT, size, fields, source, releases)


def _rows() -> Iterator[StructRow]:
    titles, *lines = (line.split() for line in _TABLE.strip().splitlines())
    for line in lines:
        cells = dict(zip(titles, line))
        first, last, wheels, size, magic = (cells.pop(name) for name in titles[:5])
        offsets: Dict[str, int] = {name: int(cell) for name, cell in cells.items() if cell != "-"}
        for number, name in enumerate(("rank", "nRanks", "cudaDev"), 2):
            offsets[name] = offsets["commHash"] + 4 * number
        offsets["finalizeCalled"] = offsets["initState"] + 4
        if magic == "yes":
            offsets.update(startMagic=0, endMagic=int(size) - 8)
        names = "/".join(f"nvidia-nccl-{wheel}" for wheel in wheels.split(","))
        yield struct_row(int(size), offsets, f"DWARF of {names} {first}", (first, last))


LAYOUTS: Tuple[StructRow, ...] = tuple(_rows())
"""One row for each layout that was found."""
