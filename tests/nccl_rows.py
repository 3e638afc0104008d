"""Rows of knowledge/runtimes/nccl.py from the debug information of NCCL's wheels: prints them, or compares
(`--check`)."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Iterator, Optional, Tuple

from gdbext.capture.nccl.dwarf_layout import layout_of
from gdbext.capture.nccl.library import release_of, rows_for
from gdbext.knowledge.row_kinds import StructRow

MEMBER = "nvidia/nccl/lib/libnccl.so.2"


def library_of_wheel(release: str, cuda: str, folder: Path) -> Path:
    """Download one wheel by its name and unpack the library from it."""
    name = f"nvidia-nccl-{cuda}=={release}"
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), name]
    subprocess.run(words, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extract(MEMBER, folder)
    wheel.unlink()
    return folder / MEMBER


def offsets(row: StructRow) -> Tuple[int, Tuple[Tuple[str, int], ...]]:
    """What makes two rows the same layout."""
    return row.size, tuple(sorted((name, field.offset) for name, field in row.fields.items()))


def _libraries(options: argparse.Namespace) -> Iterator[Tuple[str, Path]]:
    for what in options.what:
        if Path(what).exists():
            yield what, Path(what)
            continue
        with tempfile.TemporaryDirectory(prefix="nccl-rows-") as folder:
            yield what, library_of_wheel(what, options.cuda, Path(folder))


def _answer(library: Path, check: bool) -> Tuple[bool, str]:
    release = release_of(str(library), str(library))
    measured: Optional[StructRow] = layout_of(str(library))
    if measured is None:
        return False, f"NCCL {release}: no debug information for its communicators"
    known = [row for row in rows_for(release) if offsets(row) == offsets(measured)]
    if check:
        return bool(known), f"NCCL {release}: {'the row is right' if known else 'NO ROW LIKE THIS'}"
    members = ", ".join(f"{name} {field.offset}" for name, field in measured.fields.items())
    return True, f"NCCL {release}: size {measured.size}, {members}"


def main() -> int:
    """0 when every library could be read, and with --check has its row."""
    parser = argparse.ArgumentParser(prog="scripts/nccl-rows", description=__doc__)
    parser.add_argument("what", nargs="+", metavar="RELEASE|PATH")
    parser.add_argument(
        "--check", action="store_true", help="compare with the rows in gdbext/knowledge/runtimes/nccl.py"
    )
    parser.add_argument("--cuda", default="cu12", help="which wheel: nvidia-nccl-cu12 (cu12), ...")
    options = parser.parse_args()
    good = True
    for _, library in _libraries(options):
        right, line = _answer(library, options.check)
        good = good and right
        print(line, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
