"""Makes ranks that are large in one respect: many libraries, many threads, a library with gigabytes of symbols.

Everything is written into a folder of the caller. The program loads libraries lib0.so, lib1.so, ... and starts
threads, each of which sleeps a call deep in one of them.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import struct
import subprocess
from array import array
from typing import NamedTuple

LIBRARY = """
int library(int (*next)(int), int x) { return next(x) + 1; }
"""
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int (**functions)(int (*)(int), int);
static int count, total, arrived;
static int wait_here(int x)
{
    if (__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST) == total) {  /* all threads are where they stay */
        puts("ready");
        fflush(stdout);
    }
    for (;;) pause();
    return x;
}
static void *run(void *number) { functions[(long)number % count](wait_here, 1); return 0; }
int main(int argc, char **argv)
{
    count = atoi(argv[2]);
    total = atoi(argv[3]) ? atoi(argv[3]) : 1;
    functions = calloc(count, sizeof *functions);
    char name[4096];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s/lib%d.so", argv[1], i);
        void *library = dlopen(name, RTLD_NOW);
        if (!library || !(functions[i] = (int (*)(int (*)(int), int))dlsym(library, "library"))) return 3;
    }
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    for (long i = 1; i < total; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, run, (void *)i)) return 4;
    }
    run(0);
}
"""
CODE = 16  # bytes of a function of the many
_UNIT = 4096  # functions of a compilation unit
_NAME = b"_ZN6engine5layer9attentionI_XXXX_%04xE7forwardEv\0"  # XXXX: the upper digits
_STRIDE = len(_NAME % 0)
_SECTION = struct.Struct("<IIQQQQIIQQ")


class Symbols(NamedTuple):
    """What a library holds beyond its one function: so many functions, with debug information or without.

    `gap`: bytes of empty rows, which take no room on the disk, in front of the symbol table's own."""

    functions: int = 0
    debug: bool = False
    gap: int = 0


def build(folder, libraries, symbols=Symbols()):
    """The program and its libraries: the first one has `symbols`, all others are copies of a small one."""
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-pthread", "-o", folder / "program", folder / "program.c", "-ldl"], check=True)
    (folder / "library.c").write_text(LIBRARY)
    flags = ["-O0", "-shared", "-fPIC", "-Wl,--build-id"]
    subprocess.run(["gcc", *flags, "-o", folder / "small.so", folder / "library.c"], check=True)
    for number in range(libraries):
        shutil.copy(folder / "small.so", folder / f"lib{number}.so")
    if symbols.functions:
        (folder / "many.s").write_text(
            f".text\n.balign 16\n.globl many\nmany: .skip {symbols.functions * CODE}\n"
            '.section .note.GNU-stack,"",@progbits\n'
        )
        sources = [folder / "library.c", folder / "many.s"]
        extra = ["-g", "-gdwarf-4"] if symbols.debug else ["-Wl,-S"]
        subprocess.run(["gcc", *flags, *extra, "-o", folder / "plain.so", *sources], check=True)
        write_library(str(folder / "plain.so"), str(folder / "lib0.so"), symbols)
        (folder / "plain.so").unlink()


@contextlib.contextmanager
def running(folder, libraries, threads, ranks=1):
    """Pids of so many processes, each with its threads asleep."""
    argv = [str(folder / "program"), str(folder), str(libraries), str(threads)]
    processes = []
    try:
        for _ in range(ranks):
            processes.append(subprocess.Popen(argv, stdout=subprocess.PIPE, preexec_fn=_die_with_parent, text=True))
        for process in processes:
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"a rank with {threads} threads did not start (status {process.wait()}; ulimit -u?)")
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stdout.close()


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def write_library(source, target, symbols):
    """A copy of a linked library in which every 16 bytes of code behind `many` are a function.

    The zeros of its code take no room on the disk. The first half of the symbols is local, in the order of their
    addresses; those of the second half follow each other as a linker's hash table has them.
    """
    with open(source, "rb") as file:
        header = bytearray(file.read(64))
        at, rows, names_row = struct.unpack_from("<Q", header, 40)[0], *struct.unpack_from("<HH", header, 60)
        file.seek(at)
        sections = [list(_SECTION.unpack(file.read(_SECTION.size))) for _ in range(rows)]
        file.seek(sections[names_row][4])
        texts = file.read(sections[names_row][5])
        kept = {texts[row[0] : texts.index(b"\0", row[0])]: row for row in sections}
        many = _address_of(source, "many")
        with open(target, "wb") as out:
            _copy_sparse(file, out, at)
            writer = _Writer(file, out, kept, sections.index(kept[b".text"]), many, symbols)
            writer.names()
            writer.symbols()
            if symbols.debug:
                writer.debug()
            out.seek(out.tell() + -out.tell() % 8)
            struct.pack_into("<Q", header, 40, out.tell())
            for row in sections:
                out.write(_SECTION.pack(*row))
            out.seek(0)
            out.write(header)
    os.chmod(target, 0o755)


def _address_of(library, name):
    listed = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
    return next(int(line.split()[0], 16) for line in listed.splitlines() if line.split()[-1] == name)


def _copy_sparse(file, out, size):
    file.seek(0)
    left = size
    while left:
        piece = file.read(min(left, 1 << 20))
        left -= len(piece)
        if piece.strip(b"\0"):
            out.write(piece)
        else:
            out.seek(len(piece), os.SEEK_CUR)


class _Writer:
    """Appends the tables, and changes the section headers of those that they replace."""

    def __init__(self, file, out, sections, text, many, symbols):
        self._file, self._out, self._sections, self._text = file, out, sections, text
        self._many, self._count, self._gap = many, symbols.functions, symbols.gap // 24
        self._strings = b"\0"

    def _content(self, name):
        row = self._sections[name]
        self._file.seek(row[4])
        return self._file.read(row[5])

    def _replace(self, name, begin, size):
        self._sections[name][4:6] = begin, size

    def names(self):
        """One table of texts, for symbols and debug information alike."""
        begin = self._out.tell()
        old = self._content(b".debug_str") if b".debug_str" in self._sections else b""
        self._strings = b"\0" + old
        self._out.write(self._strings)
        piece = b"".join(_NAME % number for number in range(1 << 16))
        for upper in range((self._count >> 16) + 1):
            rest = min(1 << 16, self._count - (upper << 16)) * _STRIDE
            self._out.write(memoryview(piece.replace(b"XXXX", b"%04x" % upper))[:rest])
        size = self._out.tell() - begin
        self._replace(b".strtab", begin, size)
        if old:
            self._replace(b".debug_str", begin + 1, size - 1)  # their offsets in the old text stay what they were

    def _first(self, number):
        """Offset of a name in the table of texts."""
        return len(self._strings) + number * _STRIDE

    def symbols(self):
        """Half of them in order; the others in 251 strides through the rest of the code."""
        begin = self._out.tell() + -self._out.tell() % 8
        self._out.seek(begin + 24 + 24 * self._gap)
        half = self._count // 2
        runs = [range(first, min(first + (1 << 16), half)) for first in range(0, half, 1 << 16)]
        self._rows(runs, info=2)
        self._rows([range(half + step, self._count, 251) for step in range(251)], info=0x12)
        self._replace(b".symtab", begin, self._out.tell() - begin)
        self._sections[b".symtab"][7] = 1 + self._gap + half

    def _rows(self, runs, info):
        for run in runs:
            words = array("Q", bytes(24 * len(run)))
            head = self._text << 48 | info << 32
            words[0::3] = array("Q", _mapped(run, head + self._first(0), _STRIDE))
            words[1::3] = array("Q", _mapped(run, self._many, CODE))
            words[2::3] = array("Q", [CODE]) * len(run)
            self._out.write(words)

    def debug(self):
        """A unit for 4096 functions, each with name, place and line, behind what the compiler made."""
        abbreviations = self._content(b".debug_abbrev")
        table = bytes([1, 0x11, 1, 3, 0x0E, 0x13, 0x0B, 0x11, 1, 0x12, 7, 0, 0])  # name strp, language, low_pc, high_pc
        # decl_file data1, decl_line data2, name strp, low_pc, high_pc data8: 24 bytes with the number of the row
        table += bytes([2, 0x2E, 0, 0x3A, 0x0B, 0x3B, 5, 3, 0x0E, 0x11, 1, 0x12, 7, 0, 0, 0])
        begin = self._out.tell()
        self._out.write(abbreviations + table)
        self._replace(b".debug_abbrev", begin, self._out.tell() - begin)
        begin, ranges = self._out.tell(), [self._content(b".debug_aranges")]
        self._out.write(self._content(b".debug_info"))
        for first in range(0, self._count, _UNIT):
            run = range(first, min(first + _UNIT, self._count))
            low, size = self._many + CODE * first, CODE * len(run)
            ranges.append(struct.pack("<IHIBBIQQQQ", 44, 2, self._out.tell() - begin, 8, 0, 0, low, size, 0, 0))
            unit = struct.pack("<HIB", 4, len(abbreviations), 8)
            unit += struct.pack("<BIBQQ", 1, self._first(first) - 1, 12, low, size)
            rows = array("Q", bytes(24 * len(run)))
            head = 2 | 1 << 8 | 7 << 16
            rows[0::3] = array("Q", _mapped(run, head + (self._first(0) - 1 << 32), _STRIDE << 32))
            rows[1::3] = array("Q", _mapped(run, self._many, CODE))
            rows[2::3] = array("Q", [CODE]) * len(run)
            self._out.write(struct.pack("<I", len(unit) + 24 * len(run) + 1) + unit)
            self._out.write(rows)
            self._out.write(b"\0")
        self._replace(b".debug_info", begin, self._out.tell() - begin)
        begin = self._out.tell()
        self._out.write(b"".join(ranges))
        self._replace(b".debug_aranges", begin, self._out.tell() - begin)


def _mapped(run, base, step):
    """`base + step * number` of all numbers of a range, at the speed of a range."""
    return range(base + step * run.start, base + step * (run.start + run.step * len(run)), step * run.step)
