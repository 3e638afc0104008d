"""gdbext as one file: what scripts/package writes, and what goes to a host that has no gdbext."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import zipfile
from pathlib import Path
from typing import Dict, Iterator, Mapping, Tuple

import gdbext
from gdbext.model.errors import GdbextError

MARKER = "ONE_FILE"  # its content: the digest of all other members
LEXERS = frozenset({"__init__.py", "_mapping.py", "asm.py", "c_cpp.py", "c_like.py", "python.py"})
"""Of the 300 that pygments has."""
_MAIN = "gdbext/collect/hosts/one_file_main.py"
_LEFT_OUT = (".so", ".pyd", ".c", ".pyc")  # compiled for one machine
_DATE = (1980, 1, 1, 0, 0, 0)


def packed(members: Mapping[str, bytes]) -> Tuple[bytes, str]:
    """The archive and its build: the same for the same members, whenever and wherever it is made."""
    inside = {**members, "__main__.py": members[_MAIN]}
    build = hashlib.sha256()
    for name in sorted(inside):
        build.update(f"{name}\0{len(inside[name])}\0".encode() + inside[name])
    inside[MARKER] = (build.hexdigest() + "\n").encode()
    target = io.BytesIO()
    target.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(inside):
            member = zipfile.ZipInfo(name, _DATE)
            member.external_attr = 0o100644 << 16
            member.create_system = 3  # Unix, wherever it is built
            archive.writestr(member, inside[name], zipfile.ZIP_DEFLATED, 9)
    return target.getvalue(), build.hexdigest()


def of_this_installation() -> bytes:
    """gdbext as it runs here, with the packages that it cannot do without."""
    package = Path(gdbext.__file__).parent
    members: Dict[str, bytes] = dict(files_below(package, package.parent))
    for name in gdbext.PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise GdbextError(f"the package {name} is missing", gdbext.INSTALL)
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            members.update(files_below(origin.parent, origin.parents[1]))
        else:
            members[origin.name] = origin.read_bytes()
    return packed(members)[0]


def files_below(folder: Path, top: Path) -> Iterator[Tuple[str, bytes]]:
    """(name from `top` on, bytes) of what is not compiled."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(top).as_posix()
        if path.suffix in _LEFT_OUT or not path.is_file():
            continue
        if not name.startswith("pygments/lexers/") or path.name in LEXERS:
            yield name, path.read_bytes()
