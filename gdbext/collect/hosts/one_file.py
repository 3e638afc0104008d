"""gdbext as one file: what scripts/package writes, and what goes to a host that has no gdbext."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import struct
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
_LEVEL = 6  # of what is sent once: 9 takes twice the time for a hundredth of the bytes
_UNCHECKED = 1  # a .pyc that is not compared with its source: the archive's digest covers both
_LOOKS = frozenset(
    {"capture", "cli", "collect", "commands", "discovery", "inside_gdb", "knowledge", "model", "safe_open"}
    | {"snapshot_builder", "witnesses"}
)
_DATE = (1980, 1, 1, 0, 0, 0)


def build_archive(members: Mapping[str, bytes], level: int = 9) -> Tuple[bytes, str]:
    """The archive and its build: the same for the same members, whenever and wherever it is made."""
    inside = {**members, "__main__.py": members[_MAIN]}
    build = hashlib.sha256()
    for name in sorted(inside):
        build.update(f"{name}\0{len(inside[name])}\0".encode() + inside[name])
    inside[MARKER] = (build.hexdigest() + "\n").encode()
    target = io.BytesIO()
    target.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name in sorted(inside):
            member = zipfile.ZipInfo(name, _DATE)
            member.external_attr = 0o100644 << 16
            member.create_system = 3  # Unix, wherever it is built
            archive.writestr(member, inside[name], zipfile.ZIP_DEFLATED, level)
    return target.getvalue(), build.hexdigest()


def of_this_installation() -> Tuple[bytes, bytes]:
    """gdbext as it runs here, with the packages that it cannot do without: for any Python, and with what this Python
    has compiled already, for hosts with the same one."""
    package = Path(gdbext.__file__).parent
    members: Dict[str, bytes] = dict(files_below(package, package.parent))
    compiled = dict(_compiled(package, members))
    for name in gdbext.PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise GdbextError(f"the package {name} is missing", gdbext.INSTALL)
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            members.update(files_below(origin.parent, origin.parents[1]))
        else:
            members[origin.name] = origin.read_bytes()
    return build_archive(members, _LEVEL)[0], build_archive({**members, **compiled}, _LEVEL)[0]


def _compiled(package: Path, sources: Mapping[str, bytes]) -> Iterator[Tuple[str, bytes]]:
    """What Python keeps of the modules that a look takes, marked as belonging to the source beside it (PEP 552)."""
    for name, source in sources.items():
        path = package.parent / name
        if path.suffix != ".py" or path.relative_to(package).parts[0] not in _LOOKS:
            continue
        kept = Path(importlib.util.cache_from_source(str(path)))
        try:
            data, now = kept.read_bytes(), path.stat()
        except OSError:
            continue
        magic, flags, seconds, size = struct.unpack_from("<4s3L", data.ljust(16, b"\0"))
        known = (importlib.util.MAGIC_NUMBER, 0, int(now.st_mtime) & 0xFFFFFFFF, len(source))
        if (magic, flags, seconds, size) == known:
            head = struct.pack("<4sL", magic, _UNCHECKED) + importlib.util.source_hash(source)
            yield f"{Path(name).parent.as_posix()}/__pycache__/{kept.name}", head + data[16:]


def files_below(folder: Path, top: Path) -> Iterator[Tuple[str, bytes]]:
    """(name from `top` on, bytes) of what is not compiled."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(top).as_posix()
        if path.suffix in _LEFT_OUT or not path.is_file():
            continue
        if not name.startswith("pygments/lexers/") or path.name in LEXERS:
            yield name, path.read_bytes()
