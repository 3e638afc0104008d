"""`gdbext dump ls DIR`: what an engine has dumped, by rank and step."""

from __future__ import annotations

import argparse
import os
import re
from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple

from gdbext.cli.answer_output import show
from gdbext.knowledge.dumps.dump_layouts import LAYOUTS, TENSOR, DumpLayout
from gdbext.model.dumps import DumpedFile, DumpGroup, DumpListing
from gdbext.model.errors import GdbextError, NothingFound
from gdbext.model.exit_status import exit_status
from gdbext.model.text.digits import integer_or_none
from gdbext.model.text.ranges import counted, ranks

MOST = 1_000_000  # files
_DEEPEST = 12
_MOST_UNEVEN = 8
_LAYOUTS = tuple((re.compile(row.pattern), row) for row in LAYOUTS)


def run(options: argparse.Namespace) -> int:
    """The whole command; returns its exit status."""
    show(listing(options.folder, options.rank, options.step, options.name), options)
    return exit_status(False)


def listing(
    folder: str, rank: Optional[int] = None, step: Optional[int] = None, name: Optional[str] = None
) -> DumpListing:
    """What lies there. Raises `GdbextError`, `NothingFound`."""
    known: List[DumpedFile] = []
    unknown = seen = 0
    for path, size in _walk(folder):
        seen += 1
        found = read_name(path, size)
        if found is None:
            unknown += 1
        else:
            known.append(found)
        if seen == MOST:
            break
    if not known:
        why = f"{counted(seen, 'file')}, not in a known dump format" if seen else "empty"
        raise NothingFound(f"{folder} has no dump ({why})", "name the folder that `gdbext run --dump` printed")
    notes = [f"only the first {MOST:,} files were read"] if seen == MOST else []
    if any(one.engine == "tensorrt-llm" for one in known):
        notes.append(
            "TensorRT-LLM's folder names do not contain the rank: ranks that shared a folder overwrote "
            "each other's files"
        )
    asked = [
        one
        for one in known
        if rank in (None, one.rank) and step in (None, one.step) and (name is None or name in one.name)
    ]
    if not asked:
        raise NothingFound(f"{folder} has no such file", "`gdbext dump ls DIR` lists all of it")
    named = rank is not None or name is not None
    return DumpListing(
        folder=folder,
        groups=tuple(_groups(asked)),
        files=tuple(sorted(asked, key=_order)) if named else (),
        unknown=unknown,
        uneven=tuple(_uneven(asked if rank is None else known)),
        pair=_pair(folder, asked if rank is None else known),
        notes=tuple(notes),
    )


def read_name(path: str, size: int) -> Optional[DumpedFile]:
    """What a file is, by its path below the folder; None for one of no known layout."""
    for pattern, row in _LAYOUTS:
        found = pattern.fullmatch(path)
        if found is not None:
            return _file(path, size, row, {key: value for key, value in found.groupdict().items() if value is not None})
    return None


def _file(path: str, size: int, row: DumpLayout, said: Dict[str, str]) -> DumpedFile:
    name = ".".join(said[part] for part in ("name", "io") if part in said)
    of = f"pid {said['pid']}" if "pid" in said else f"DP {said['dp']}" if said.get("dp", "0") != "0" else ""
    return DumpedFile(
        path=path,
        engine=row.engine,
        what=row.what,
        bytes=size,
        rank=integer_or_none(said.get("rank")),
        step=integer_or_none(said.get("step")),
        name=name,
        of=of,
    )


def _walk(folder: str) -> Iterator[Tuple[str, int]]:
    """Paths below the folder and sizes, links left out. Raises `GdbextError`."""
    if not os.path.isdir(folder):
        raise GdbextError(f"{folder} is not a folder", "name the folder that `gdbext run --dump` printed")

    def fail(error: OSError) -> None:
        if error.filename == folder:
            raise GdbextError(f"cannot read {folder}: {error.strerror}") from None

    for place, folders, names in os.walk(folder, onerror=fail):
        folders.sort()
        if os.path.relpath(place, folder).count(os.sep) >= _DEEPEST:
            folders[:] = []
        for name in sorted(names):
            path = os.path.join(place, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if os.path.isfile(path) and not os.path.islink(path):
                yield os.path.relpath(path, folder), status.st_size


def _order(one: DumpedFile) -> Tuple[int, int, str]:
    return (-1 if one.rank is None else one.rank, -1 if one.step is None else one.step, one.path)


def _groups(files: Sequence[DumpedFile]) -> List[DumpGroup]:
    found: Dict[Tuple[str, int, str, str], List[DumpedFile]] = {}
    for one in sorted(files, key=_order):
        key = (_owner_of_file(one), -1 if one.step is None else one.step, one.what, one.engine)
        found.setdefault(key, []).append(one)
    return [
        DumpGroup(
            whose=owner,
            step=None if step < 0 else step,
            what=what,
            engine=engine,
            files=len(some),
            bytes=sum(one.bytes for one in some),
        )
        for (owner, step, what, engine), some in found.items()
    ]


def _owner_of_file(one: DumpedFile) -> str:
    parts = [f"rank {one.rank}" if one.rank is not None else "", one.of]
    return ", ".join(filter(None, parts)) or "?"


def _uneven(files: Sequence[DumpedFile]) -> Iterator[str]:
    """What some ranks have of a step and others do not: the first place where they parted, perhaps."""
    steps: Dict[Tuple[int, str], Dict[str, Set[int]]] = {}
    everybody: Dict[str, Set[int]] = {}
    for one in files:
        if one.rank is not None and one.what == TENSOR and one.step is not None:
            steps.setdefault((one.step, one.engine), {}).setdefault(one.name, set()).add(one.rank)
            everybody.setdefault(one.engine, set()).add(one.rank)
    said = 0
    for (step, engine), names in sorted(steps.items()):
        lacks: Dict[Tuple[int, ...], List[str]] = {}
        for name, having in names.items():
            missing = tuple(sorted(everybody[engine] - having))
            if missing:
                lacks.setdefault(missing, []).append(name)
        for missing, some in sorted(lacks.items()):
            if said == _MOST_UNEVEN:
                return
            said += 1
            what = f"{len(some):,} of {len(names):,} tensors" if some != [""] else "any tensor"
            example = f", for example {some[0]}" if some != [""] else ""
            yield f"step {step}: {ranks(missing)} did not write {what} that others wrote{example}"


def _pair(folder: str, files: Sequence[DumpedFile]) -> Tuple[str, ...]:
    """Two ranks' files of the same tensor, the first that there are."""
    first: Dict[Tuple[Optional[int], str, str], DumpedFile] = {}
    for one in sorted(files, key=lambda file: (-1 if file.step is None else file.step, file.path)):
        if one.what != TENSOR or one.rank is None:
            continue
        other = first.setdefault((one.step, one.name, one.engine), one)
        if other.rank != one.rank:
            return os.path.join(folder, other.path), os.path.join(folder, one.path)
    return ()
