"""Writes a GPU core of global memory alone, in the format of NVIDIA's cudacoredump.h."""

import struct

HEADER, SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")
NAMES = b"\0.shstrtab\0.cudbg.global\0"


def gpu_core(pieces, claims=None, numbers_in_first=False, count=None):
    """`pieces`: address -> bytes. `claims`: a size that the sections say instead of their own."""
    body, rows = b"", [SECTION.pack(*[0] * 10)]
    for address, data in pieces.items():
        size = len(data) if claims is None else claims
        rows.append(SECTION.pack(12, 0x80000002, 0, address, HEADER.size + len(body), size, 0, 0, 8, 0))
        body += data
    rows.append(SECTION.pack(1, 3, 0, 0, HEADER.size + len(body), len(NAMES), 0, 0, 1, 0))
    total = len(rows) if count is None else count
    if numbers_in_first:
        rows[0] = SECTION.pack(0, 0, 0, 0, 0, total, len(rows) - 1, 0, 0, 0)
    told = (0, 0xFFFF) if numbers_in_first else (total, len(rows) - 1)
    identity = b"\x7fELF\x02\x01\x01\x33" + bytes(8)
    table = HEADER.size + len(body) + len(NAMES)
    header = HEADER.pack(identity, 4, 190, 1, 0, 0, table, 0, HEADER.size, 0, 0, SECTION.size, *told)
    return header + body + NAMES + b"".join(rows)
