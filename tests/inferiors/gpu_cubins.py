"""Real cubins: PTX of ours, assembled by the ptxas of a wheel."""

import functools
import struct
import subprocess
import tempfile
from pathlib import Path

import nvidia.cuda_nvcc

PTXAS = Path(next(iter(nvidia.cuda_nvcc.__path__))) / "bin" / "ptxas"
SOURCE = Path(__file__).with_name("gpu_kernels.ptx")
SCALE, SPIN = "_ZN6engine5scaleIfEEvPT_i", "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LLPVi"


@functools.lru_cache(maxsize=None)
def cubin(architecture="sm_80", lines=True):
    """The cubin of the kernels in gpu_kernels.ptx."""
    text = SOURCE.read_text().replace("sm_80", architecture)
    if architecture > "sm_80":
        text = text.replace(".version 7.0", ".version 8.0")
    if not lines:
        text = without_lines(text)
    return assembled(text, architecture, lines)


def without_lines(text):
    """The PTX as it is without -lineinfo."""
    return "\n".join(one for one in text.splitlines() if not one.strip().startswith((".loc", ".file")))


def assembled(text, architecture="sm_80", lines=True):
    """The cubin of this PTX."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        source.write_text(text)
        program = PTXAS
        if not PTXAS.stat().st_mode & 0o100:  # pip keeps the bit, some unpackers do not
            program = Path(folder, "ptxas")
            program.write_bytes(PTXAS.read_bytes())
            program.chmod(0o700)
        words = [str(program), f"-arch={architecture}", *(["-lineinfo"] if lines else []), "-o", str(made), str(source)]
        subprocess.run(words, check=True, capture_output=True)
        return made.read_bytes()


SECTION, SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")


def relocated(data, base=0x7F0000000000, in_lines=True):
    """The cubin as the driver has put it into a device: addresses in its sections and symbols, and in its line tables;
    and where each kernel begins."""
    made = bytearray(data)
    at, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    rows = [SECTION.unpack_from(data, at + number * size) for number in range(count)]
    names = rows[struct.unpack_from("<H", data, 62)[0]]
    starts, entries = {}, {}
    for number, row in enumerate(rows):
        if row[2] & 4:  # code
            starts[number] = base + 0x1000 * len(starts)
            struct.pack_into("<Q", made, at + number * size + 16, starts[number])
    symbols = next(row for row in rows if row[1] == 2)
    table = []
    for place in range(symbols[4], symbols[4] + symbols[5], SYMBOL.size):
        name, info, _other, section, value, _size = SYMBOL.unpack_from(data, place)
        table.append((section, value))
        if section in starts:
            struct.pack_into("<Q", made, place + 8, value + starts[section])
            texts = rows[symbols[6]][4]
            if info & 15 == 2:
                entries[data[texts + name : data.index(b"\0", texts + name)].decode()] = value + starts[section]
    for row in rows:
        title = data[names[4] + row[0] : data.index(b"\0", names[4] + row[0])]
        if title == b".rela.debug_line" and in_lines:
            lines = rows[row[7]][4]
            for place in range(row[4], row[4] + row[5], 24):
                where, info, addend = struct.unpack_from("<QQq", data, place)
                section, value = table[info >> 32]
                struct.pack_into("<Q", made, lines + where, starts[section] + value + addend)
    return bytes(made), entries
