"""Writes GPU cores in the format of NVIDIA's public header cudacoredump.h: of global memory, or of a whole device.

The layouts stand here once more, written down from the header: the reader has its own.
"""

import struct

HEADER, SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")
NAMES = b"\0.shstrtab\0.cudbg.global\0"
IDENTITY = b"\x7fELF\x02\x01\x01\x33\x07" + bytes(7)  # ELFOSABI_CUDA, version 7: cuda-gdb opens no other


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
    table = HEADER.size + len(body) + len(NAMES)
    header = HEADER.pack(IDENTITY, 4, 190, 1, 0, 0, table, 0, HEADER.size, 0, 0, SECTION.size, *told)
    return header + body + NAMES + b"".join(rows)


_KINDS = (
    "- managed global local shared regs elfimg relfimg bt devtbl ctxtbl smtbl gridtbl ctatbl wptbl lntbl modtbl"
    " pred param uregs upred cbankstbl meta cbu_bar"
)
TYPES = {name: 0x80000000 + number for number, name in enumerate(_KINDS.split())}
OLD, R525, R555, R575 = 400, 525, 555, 575


class GpuCoreFile:
    """Sections are added with the section and row that they belong to; `bytes()` is the file.

    `driver`: whose rows are written, a release of `OLD`, `R525`, `R555`, `R575`. `longer`: bytes behind each row, as of
    a driver that is not known yet.
    """

    def __init__(self, driver=R575, longer=0):
        self.driver, self.longer = driver, longer
        self.sections, self.strings, self.rows = [], bytearray(b"\0"), {}

    def name(self, text):
        """Its offset in .strtab."""
        self.strings += text.encode() + b"\0"
        return len(self.strings) - len(text) - 1

    def section(self, kind, data, parent=None, row=0, suffix="", size=0, address=0):
        self.sections.append([kind, bytes(data), parent, row, suffix, size, address])
        return len(self.sections) - 1

    def table(self, kind, rows, parent=None, row=0, suffix=""):
        rows = [one + bytes(self.longer) for one in rows]
        return self.section(kind, b"".join(rows), parent, row, suffix, len(rows[0]) if rows else 8)

    def device(self, number=0, sms=132, name="NVIDIA H100 80GB HBM3", sm=(9, 0)):
        texts = [self.name(one) for one in (name, "GH100", f"sm_{sm[0]}{sm[1]}")]
        values = [number, 0x1B, 0, sms, 64, 32, 255, 7, *sm, 16, 0, 63, 7]
        return struct.pack("<3Q14I", *texts, *values) + (struct.pack("<2I", 16, 0) if self.driver >= R575 else b"")

    def grid(self, number, entry, module=0x5000, status=2, grid=(1, 1, 1), block=(32, 1, 1), tid=0, parent=0):
        row = struct.pack("<7Q", number & (1 << 64) - 1, 0x6000, 0x7000, entry, module, parent, 0x210)
        row += struct.pack("<12I", 1, 0, status, 40, *grid, *block, 0, tid)
        return row + (struct.pack("<4I", 2, 1, 1, 0) if self.driver >= R525 else b"")

    def sm(self, number, exception=0, pc=None):
        row = struct.pack("<2I", number, 0)
        if self.driver >= R555:
            row += struct.pack("<2IQ4I", exception, pc is not None, pc or 0, 0, 0, 0, 0)
        return row

    def block(self, grid, index=(0, 0, 0)):
        return struct.pack("<Q4I", grid & (1 << 64) - 1, *index, 0)

    def warp(self, number, valid=0xFFFFFFFF, active=None, pc=None):
        active = valid if active is None else active
        row = struct.pack("<Q6I", pc or 0, number, valid, active, 0, pc is not None, 0)
        return row + (struct.pack("<8I", 40, 0, 0, 0, 0, active, 0, 0) if self.driver >= R575 else b"")

    def lane(self, number, pc, thread=(0, 0, 0), exception=0, depth=0):
        row = struct.pack("<2Q8I", pc, pc & 0xFFF, number, *thread, exception, depth, 0, 0)
        return row + (struct.pack("<2I", 0, 0) if self.driver >= R575 else b"")

    def call(self, pc, level):
        return struct.pack("<2Q2I", pc & 0xFFF, pc, level, 0)

    def meta(self, driver=575, cuda=(12, 9), flags=47, written=1_732_190_000):
        return struct.pack("<Q6I", self.name("driver"), driver, 57, *cuda, flags, written)

    def padding(self, count):
        """Registers and the like, of which nobody wants to know."""
        for number in range(count):
            self.section("regs", b"", suffix=f".{number}")

    def __bytes__(self):
        names, body = bytearray(b"\0.shstrtab\0.strtab\0"), bytearray()
        rows = [bytes(SECTION.size)]
        for kind, data, parent, row, suffix, size, address in self.sections:
            at = len(names)
            names += f".cudbg.{kind}{suffix}".encode() + b"\0"
            link = 0 if parent is None else parent + 1
            place = HEADER.size + len(body)
            rows.append(SECTION.pack(at, TYPES[kind], 0, address, place, len(data), link, row, 8, size))
            body += data
        for at, data in ((1, None), (11, bytes(self.strings))):
            text = bytes(names) if data is None else data
            rows.append(SECTION.pack(at, 3, 0, 0, HEADER.size + len(body), len(text), 0, 0, 1, 0))
            body += text
        count, shstrtab = len(rows), len(rows) - 2
        told = (count, shstrtab)
        if count >= 0xFF00:
            rows[0] = SECTION.pack(0, 0, 0, 0, 0, count, shstrtab, 0, 0, 0)
            told = (0, 0xFFFF)
        table = HEADER.size + len(body)
        header = HEADER.pack(IDENTITY, 4, 190, 1, 0, 0, table, 0, HEADER.size, 0, 0, SECTION.size, *told)
        return header + bytes(body) + b"".join(rows)


def core_of(cubin, kernels, driver=R575, longer=0, images=True, more=0, device=0, tid=71, registers=False):
    """A core of one device. `kernels`: dicts of entry, sms, pc, and what else `GpuCoreFile.grid` takes; `fault`:
    (exception, pc, lanes of the first warp), `calls`: addresses, `warps` of each block, `gone`: an SM alone knows."""
    file = GpuCoreFile(driver, longer)
    devices = file.table("devtbl", [file.device(device)])
    if driver >= R575:
        file.table("meta", [file.meta()])
    contexts = file.table("ctxtbl", [struct.pack("<4Q2I", 0x6000, 0, 0, 0, device, tid)], devices, 0, ".dev0")
    modules = file.table("modtbl", [struct.pack("<Q", 0x5000)], contexts, 0, ".dev0.ctx0")
    if images:
        file.section("relfimg", cubin, modules, 0, ".dev0.ctx0")
    rows = [
        file.grid(
            number,
            one["entry"],
            **{key: one[key] for key in ("status", "grid", "block", "tid", "parent") if key in one},
        )
        for number, one in enumerate(kernels, 1)
    ]
    file.table("gridtbl", rows, devices, 0, ".dev0")
    on = [(sm, number, one) for number, one in enumerate(kernels, 1) for sm in one.get("sms", ())]
    told = [one.get("gone") for _, _, one in on]
    sms = file.table(
        "smtbl", [file.sm(sm, *(gone or ())) for (sm, _, _), gone in zip(on, told)] or [file.sm(0)], devices, 0, ".dev0"
    )
    for index, (sm, number, one) in enumerate(on):
        if one.get("gone"):
            continue
        blocks = file.table("ctatbl", [file.block(number, (index, 0, 0))], sms, index, f".dev0.sm{sm}")
        count = one.get("warps", 1)
        fault = one.get("fault")
        pcs = [fault[1] if fault and warp == 0 else None for warp in range(count)]
        warps = file.table(
            "wptbl", [file.warp(warp, pc=pc) for warp, pc in enumerate(pcs)], blocks, 0, f".dev0.sm{sm}.cta0"
        )
        for warp in range(count):
            failed = fault[2] if fault and warp == 0 else 0
            lanes = [
                file.lane(lane, one["pc"], (warp * 32 + lane, 0, 0), fault[0] if failed >> lane & 1 else 0)
                for lane in range(32)
            ]
            table = file.table("lntbl", lanes, warps, warp, f".dev0.sm{sm}.cta0.wp{warp}")
            if registers:  # cuda-gdb reads them when it takes a thread for its focus
                at = f".dev0.sm{sm}.cta0.wp{warp}"
                file.section("uregs", bytes(4 * 64), warps, warp, at, 4)
                file.section("upred", bytes(4 * 8), warps, warp, at, 4)
                for lane in range(32):
                    file.section("regs", bytes(4 * 256), table, lane, f"{at}.ln{lane}", 4)
                    file.section("pred", bytes(4 * 8), table, lane, f"{at}.ln{lane}", 4)
            for lane in range(32):
                if one.get("calls") and failed >> lane & 1:
                    calls = [file.call(pc, level) for level, pc in enumerate(one["calls"])]
                    file.table("bt", calls, table, lane, f".dev0.sm{sm}.cta0.wp{warp}.ln{lane}")
    file.padding(more)
    return bytes(file)
