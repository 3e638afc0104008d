"""Writes gdbext/knowledge/errors/numbers.py from the public headers in NVIDIA's wheels, or compares (`--check`)."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Tuple

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "gdbext" / "knowledge" / "errors" / "numbers.py"


class Header(NamedTuple):
    """Where one enumeration stands."""

    table: str
    enum: str
    file: str  # end of its path in the wheel
    wheels: Tuple[str, ...]  # newest first: a later one adds only numbers that the ones before do not have


HEADERS = (
    Header(
        "CUDA_RUNTIME",
        "cudaError",
        "/driver_types.h",
        ("nvidia-cuda-runtime==13.5.37", "nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-runtime-cu11==11.8.89"),
    ),
    Header(
        "CUDA_DRIVER",
        "cudaError_enum",
        "/cuda.h",
        ("nvidia-cuda-runtime==13.5.37", "nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-runtime-cu11==11.8.89"),
    ),
    Header("CUBLAS", "cublasStatus_t", "/cublas_api.h", ("nvidia-cublas-cu12==12.9.1.4",)),
    Header("NCCL", "ncclResult_t", "/nccl.h", ("nvidia-nccl-cu12==2.32.3",)),
)
BEGIN = '''"""Error numbers and names by release, written by scripts/error-rows from the headers named below."""

from typing import Dict

'''


def header_text(wheel: str, end: str, folder: Path) -> str:
    """A header of a wheel, which is downloaded unless it lies in `folder`; "" when the wheel has none of that name."""
    name, _, release = wheel.partition("==")
    pattern = f"{name.replace('-', '_')}-{release}-*.whl"
    if not list(folder.glob(pattern)):
        words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), wheel]
        subprocess.run(words, check=True)
    with zipfile.ZipFile(next(folder.glob(pattern))) as archive:
        members = [member for member in archive.namelist() if member.endswith(end)]
        return archive.read(members[0]).decode("utf-8", "replace") if members else ""


def enumerators(text: str, enum: str) -> Iterator[Tuple[int, str]]:
    """Numbers and names of one enumeration in C source."""
    text = re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    found = re.search(rf"enum\s+(?:\w+\s+)?{enum}\s*{{(.*?)}}", text, re.DOTALL)
    found = found or re.search(rf"enum\s*{{([^}}]*)}}\s*{enum}\s*;", text)
    for name, value in re.findall(r"(\w+)\s*=\s*(\w+)", found[1] if found else ""):
        yield int(value, 0), name


def rows(header: Header, folder: Path) -> List[Tuple[int, str, str]]:
    """(number, name, wheel it was read from) of all releases together."""
    known: Dict[int, Tuple[str, str]] = {}
    for wheel in header.wheels:
        for number, name in enumerators(header_text(wheel, header.file, folder), header.enum):
            if not name.startswith("ncclNum"):
                known.setdefault(number, (name, wheel))
    return [(number, *known[number]) for number in sorted(known)]


def module(folder: Path) -> str:
    """The text of numbers.py."""
    lines = [BEGIN]
    for header in HEADERS:
        found = rows(header, folder)
        lines.append(f"{header.table}: Dict[str, str] = {{\n")
        for wheel in header.wheels:
            of_wheel = " ".join(f"{number}={name}" for number, name, source in found if source == wheel)
            if of_wheel:
                text = textwrap.fill(of_wheel, 120, initial_indent="        ", subsequent_indent="        ")
                lines.append(f"    # {wheel}, {header.file[1:]}\n")
                lines.append(f'    "{wheel.partition("==")[2]}": """\n{text}\n    """,\n')
        lines.append("}\n")
    return "".join(lines)


def main() -> int:
    """0 when the file is as the headers say."""
    parser = argparse.ArgumentParser(prog="scripts/error-rows", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 when the file differs")
    parser.add_argument("--wheels", metavar="FOLDER", help="where wheels lie already, or shall be kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="error-rows-") as temporary:
        text = module(Path(options.wheels or temporary))
    if options.check:
        same = TARGET.read_text() == text
        print("the file is right" if same else "the file differs from the headers")
        return 0 if same else 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
