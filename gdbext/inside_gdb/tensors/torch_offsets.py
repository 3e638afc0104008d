"""torch tensors without debug information: which release is loaded, and nodes over its offsets."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterable, Iterator, NamedTuple, Optional, Tuple

from gdbext.analysis.tensors.index import product
from gdbext.inside_gdb.tensors.member_paths import integer, integers
from gdbext.inside_gdb.tensors.target_object import Node, Read, StructNode, Unreadable
from gdbext.knowledge.all_tensor_layouts import STRUCTS
from gdbext.knowledge.engines.torch.layouts import MEASURED
from gdbext.knowledge.row_kinds import StructRow
from gdbext.model.text.digits import is_whole
from gdbext.safe_open import files

TENSOR = "c10::TensorImpl"
_LIBRARY = re.compile(r"(.*/torch)/lib/libc10\.so(?: \(deleted\))?\Z")
_ASSIGNED = re.compile(r"^__version__\s*(?::[^=]*)?=\s*['\"](\d+\.\d+[^'\"]*)['\"]", re.MULTILINE)
_FOLDER = re.compile(r"torch-(\d+\.\d+[^-]*)\.(?:dist-info|egg-info)\Z")
_TEXT_CAP = 1 << 16
_MOST_NAMES = 20_000


class Release(NamedTuple):
    """A release of torch and how it is known. `number` is empty when it is not."""

    number: str
    source: str

    @property
    def short(self) -> str:
        return ".".join(self.number.split("+")[0].split(".")[:2])


def loaded_release(paths: Iterable[str], root: str = "") -> Optional[Release]:
    """The release of the torch whose libc10 is among the mapped files; None when none is mapped.

    Read from the package beside the library (`root` is what stands before the target's paths). A build without its
    Python package has an empty number.
    """
    for path in paths:
        found = _LIBRARY.match(path)
        if found:
            package = found.group(1)
            return _from_version_file(root + package) or _from_folder(root + package) or Release("", path)
        if os.path.basename(path).startswith("libc10.so"):
            return Release("", path)
    return None


def _from_version_file(package: str) -> Optional[Release]:
    path = os.path.join(package, "version.py")
    try:
        found = _ASSIGNED.search(files.read_beginning(path, _TEXT_CAP).decode("utf-8", "replace"))
    except OSError:
        return None
    return Release(found.group(1), path) if found else None


def _from_folder(package: str) -> Optional[Release]:
    try:
        names = sorted(files.names_in(os.path.dirname(package), _MOST_NAMES))
    except OSError:
        return None
    found = [match for match in map(_FOLDER.match, names) if match]
    return Release(found[-1].group(1), os.path.join(os.path.dirname(package), found[-1].group(0))) if found else None


def key_of(release: str) -> Tuple[int, ...]:
    """Releases in order: 2.9 before 2.10."""
    return tuple(int(part) for part in release.split(".") if is_whole(part))


class Offsets(NamedTuple):
    """The structs of one range of releases, by id."""

    first: str
    last: str
    structs: Dict[str, StructRow]


def tables() -> Iterator[Offsets]:
    """All ranges of releases, newest first."""
    common = {row.id: row for row in STRUCTS if not row.releases[0]}
    ranges = {row.releases for row in STRUCTS if row.releases[0]}
    for first, last in sorted(ranges, key=lambda one: key_of(one[0]), reverse=True):
        yield Offsets(first, last, {**common, **{row.id: row for row in STRUCTS if row.releases == (first, last)}})


def table_of(release: str) -> Optional[Offsets]:
    """The range a release lies in; None for one that nobody has measured."""
    return next((one for one in tables() if key_of(one.first) <= key_of(release) <= key_of(one.last)), None)


def tensor_at(address: int, read: Read, release: Optional[Release]) -> Tuple[Node, str]:
    """The TensorImpl at an address, and what its kind should say about how it was read. Raises `Unreadable`."""
    if read(address, 8) is None:
        raise Unreadable(f"unreadable memory at {address:#x}")
    known = table_of(release.short) if release and release.number else None
    if known is not None and release is not None:
        doubt = "" if release.short in MEASURED else ", whose offsets were not measured"
        return _node(known, address, read), f" of torch {release.number} by offsets{doubt}"
    fitting = [one for one in tables() if is_plausible_tensor(_node(one, address, read))]
    if not fitting:
        wanted = f"torch {release.number}" if release and release.number else "an unknown release of torch"
        raise Unreadable(f"no TensorImpl at {address:#x} by the offsets of any release ({wanted})")
    best = fitting[0]
    why = f"torch {release.number} is not in the table" if release and release.number else "release of torch unknown"
    return _node(best, address, read), f" by the offsets of torch {best.first} to {best.last} ({why})"


def _node(table: Offsets, address: int, read: Read) -> StructNode:
    return StructNode(address, table.structs[TENSOR], table.structs, read)


def is_plausible_tensor(node: Node) -> bool:
    """Whether what these offsets give fits together: sizes, number of elements, dtype and device."""
    try:
        sizes = integers(node, "sizes_and_strides_")
        elements = integer(node, ("numel_",))
        dtype, device = integer(node, ("data_type_.index_",)), integer(node, ("device_opt_.type_",))
    except Unreadable:
        return False
    return len(sizes) <= 64 and product(sizes) == elements and 0 <= dtype < 64 and 0 <= device < 32
