"""The index of symbols against a plain search through all of them, and its file when it is damaged."""

import os
import random
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from gdbext.capture.elf.excerpt_file import Placed, write_file
from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.symbols.symbol_index import SymbolIndex, tables_of
from tests.excerpts import compiled, parts_of

SOURCE = r"""
#define F(n) __attribute__((noinline)) int function_##n(int x) { return x * n; }
F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9)
int alias(int) __attribute__((alias("function_4")));
int data = 4;
__asm__(".text\n.globl outer\n.type outer,@function\nouter:\n nop\n nop\n.globl inner\n.type inner,@function\ninner:\n"
        " nop\n.size inner,1\n nop\n nop\n.size outer,.-outer\n.globl unsized\nunsized:\n .skip 64,0x90\n");
"""


pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    (folder / "lib.c").write_text(SOURCE)
    target = folder / "lib.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", target, folder / "lib.c"], check=True)
    return target


@pytest.fixture(scope="module")
def elf(library):
    with open(library, "rb") as stream:
        yield ElfSymbols(stream)


def symbols(elf):
    """number -> (name, value, size) of what names code."""
    rows, number = {}, 0
    for table in tables_of(elf.sections):
        texts = elf.content(elf.sections[table.link])
        for name, info, _, section, value, size in struct.iter_unpack("<IBBHQQ", elf.content(table)):
            if 0 < section < len(elf.sections) and elf.sections[section].flags & 6 == 6 and info & 15 in (0, 1, 2, 10):
                rows[number] = (texts[name : texts.index(b"\0", name)].decode(), value, size)
            number += 1
    return rows


def plain(rows, address):
    """What covers an address, and all names of the last start before it."""
    before = [value for _, value, _ in rows.values() if value <= address]
    return {
        number
        for number, (_, value, size) in rows.items()
        if value <= address <= value + size or (before and value == max(before))
    }


def test_every_address_finds_what_a_plain_search_finds(elf):
    rows, index = symbols(elf), SymbolIndex.of(elf)
    assert {"outer", "inner", "unsized", "alias", "function_4"} <= {name for name, _, _ in rows.values()}
    text = elf.section(".text")
    for address in range(text.address - 8, text.address + text.size + 8):
        wanted, found = plain(rows, address), index.around([address])
        assert wanted <= found
        # Further ones are only those that lie between a wanted one and the address.
        assert all(min(rows[one][1] for one in wanted) <= rows[number][1] <= address for number in found - wanted)
    everywhere = range(text.address, text.address + text.size)
    assert index.around(everywhere) == set().union(*(index.around([one]) for one in everywhere))


def test_a_symbol_inside_another_hides_it_not(elf):
    rows, index = symbols(elf), SymbolIndex.of(elf)
    outer = next(value for name, value, _ in rows.values() if name == "outer")
    assert {rows[number][0] for number in index.around([outer + 4])} == {"outer", "inner"}
    assert {rows[number][0] for number in index.around([outer + 40])} >= {"unsized"}


def test_it_is_the_same_from_its_file(elf):
    index = SymbolIndex.of(elf)
    again = SymbolIndex.load(index.dump())
    addresses = [random.Random(4).randrange(0x2000) for _ in range(500)]
    assert [again.around([one]) for one in addresses] == [index.around([one]) for one in addresses]
    assert again.dump() == index.dump()


def test_a_damaged_file_is_refused_wherever_the_damage_is(elf):
    good = SymbolIndex.of(elf).dump()
    dice = random.Random(7)
    for _ in range(300):
        bad = bytearray(good)
        bad[dice.randrange(len(bad))] ^= 1 << dice.randrange(8)
        with pytest.raises(ValueError):
            SymbolIndex.load(bytes(bad))
    for size in (0, 1, 8, 15, 16, 17, 19, 20, len(good) - 1):
        with pytest.raises(ValueError):
            SymbolIndex.load(good[:size])
    with pytest.raises(ValueError):
        SymbolIndex.load(good + b"\0")
    with pytest.raises(ValueError):  # says that it has more than it has
        body = struct.pack("<Q", 1 << 60)
        SymbolIndex.load(good[:8] + body + good[16:-4] + struct.pack("<I", zlib.crc32(good[16:-4])))


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """A library that is worth an excerpt, and an address in it."""
    library = compiled(tmp_path_factory.mktemp("big"), "-Wl,--build-id")
    with open(library, "rb") as stream:
        return library, ElfSymbols(stream).look_up(["function_with_a_rather_long_name_777"]).popitem()[1]


def test_an_excerpt_is_the_same_with_and_without_what_was_kept(big, tmp_path):
    library, address = big
    cache = tmp_path / "cache"
    cache.mkdir(0o700)

    def excerpt(*folder):
        write_file(str(tmp_path / "excerpt"), [Placed(parts_of(library, [address, address + 4], *folder), 0)])
        return (tmp_path / "excerpt").read_bytes()

    wanted = excerpt()
    assert excerpt(str(cache)) == wanted
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    before = kept.stat().st_ino
    assert excerpt(str(cache)) == wanted
    assert kept.stat().st_ino == before, "nothing is written again"
    for damaged in (b"", whole[:-1], whole[:100] + b"\xff" + whole[101:], os.urandom(1000)):
        kept.write_bytes(damaged)
        assert excerpt(str(cache)) == wanted
        assert kept.read_bytes() == whole, "rebuilt"
    kept.write_bytes(whole)
    kept.chmod(0o666)
    assert excerpt(str(cache)) == wanted
    assert stat_mode(kept) == 0o600, "what others could write is replaced"
    kept.unlink()
    assert excerpt(str(cache)) == wanted
    assert excerpt(str(tmp_path / "none")) == wanted


def stat_mode(path):
    return path.stat().st_mode & 0o777


def test_a_stripped_file_of_the_same_build_has_an_index_of_its_own(big, tmp_path):
    library, address = big
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "-s", "-o", stripped, library], check=True)
    cache = tmp_path / "cache"
    cache.mkdir(0o700)
    for path in (library, str(stripped)):
        write_file(str(tmp_path / "excerpt"), [Placed(parts_of(path, [address + 4], str(cache)), 0)])
        listed = subprocess.run(["nm", tmp_path / "excerpt"], capture_output=True, text=True, check=True).stdout
        assert listed.split()[2::3] == ["function_with_a_rather_long_name_777"]
    names = [Path(name).name.partition("-")[0] for name in os.listdir(cache)]
    assert len(names) == 2 and len(set(names)) == 1
