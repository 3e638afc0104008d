"""The traces of a profile as they are written: whose each file is, and whether it is whole."""

from __future__ import annotations

import os
import re
import zlib
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from gdbext.knowledge.ascend_tables import FOLDER, RANK_FILE, TRACE_VIEW
from gdbext.knowledge.profilers import ASCEND_PID, ASCEND_TRACE, FRONT_END, STAGE
from gdbext.knowledge.traces import HOST_NAME
from gdbext.model.profiling import WrittenTrace
from gdbext.safe_open import files as safe_files
from gdbext.traces.trace_files import labels_of

_MOST_NAMES = 65_536
_PIECE = 1 << 20
_TAIL = 4096
_TRACE = re.compile(r".+\.json(?:\.gz)?")
_Stamp = Tuple[int, int, int]  # device and inode do not tell a file that is written over: inode, size, time


class TraceOwner(NamedTuple):
    """Whose trace a file or folder is, by its name."""

    key: str  # "rank 3", "TP 1, PP 0", "pid 4711"
    stage: str = ""
    is_rank: bool = True
    is_folder: bool = False


class _Found(NamedTuple):
    name: str
    whose: TraceOwner
    stamp: _Stamp


def parse_trace_name(name: str) -> Optional[TraceOwner]:
    """None for what is no trace of a profile."""
    is_folder = re.fullmatch(ASCEND_TRACE, name) is not None
    if not is_folder and not _TRACE.fullmatch(name):
        return None
    if re.fullmatch(FRONT_END, name):
        return TraceOwner(name, is_rank=False)
    rank, labels = labels_of(name)
    stage = re.search(STAGE, name)
    key = f"rank {rank}" if rank is not None else ", ".join(f"{kind.upper()} {at}" for kind, at in labels.items())
    written = re.search(ASCEND_PID, name) if is_folder else re.match(HOST_NAME, name)
    key = key or (f"pid {int(written['pid'])}" if written else "")
    return TraceOwner(key, stage["stage"] if stage else "", True, is_folder) if key else None


class Folder:
    """The folder of a profile. What lay there before (`forget`) is not of this one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._before: Dict[str, _Stamp] = {}
        self._growing: Dict[str, _GrowingFile] = {}

    def remember(self) -> None:
        """Note what is there now: it belongs to an earlier profile."""
        self._before = {one.name: one.stamp for one in self._list()}

    def look(self) -> Tuple[WrittenTrace, ...]:
        """The traces of this profile, by name."""
        found = [one for one in self._list() if self._before.get(one.name) != one.stamp]
        return tuple(self._file(one) for one in sorted(found))

    def _file(self, one: _Found) -> WrittenTrace:
        path = os.path.join(self.path, one.name)
        key, is_folder = one.whose.key, one.whose.is_folder
        state, size = self._growth(os.path.join(path, FOLDER, TRACE_VIEW) if is_folder else path)
        if is_folder:
            key = _ascend_rank(path) or key
        return WrittenTrace(
            path=path, key=key, bytes=size, state=state, stage=one.whose.stage, is_rank=one.whose.is_rank
        )

    def _growth(self, path: str) -> Tuple[str, int]:
        growing = self._growing.setdefault(path, _GrowingFile(path))
        return growing.look()

    def _list(self) -> List[_Found]:
        """Raises `OSError`; a folder that is not there yet is empty."""
        try:
            names = safe_files.names_in(self.path, _MOST_NAMES)
        except FileNotFoundError:
            return []
        found = []
        for name in names:
            about = parse_trace_name(name)
            stamp = self._stamp(name, about.is_folder) if about is not None else None
            if about is not None and stamp is not None:
                found.append(_Found(name, about, stamp))
        return found

    def _stamp(self, name: str, is_folder: bool) -> Optional[_Stamp]:
        path = os.path.join(self.path, name)
        try:
            if is_folder:
                with safe_files.folder(path) as opened:
                    status = os.fstat(opened)
                return status.st_ino, 0, 0
            status = safe_files.status(path)
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def room(self) -> Optional[int]:
        """Bytes that are free there, or in the nearest folder above; None where that cannot be asked."""
        path = self.path
        while True:
            try:
                with safe_files.folder(path) as opened:
                    about = os.fstatvfs(opened)
                return about.f_bavail * about.f_frsize
            except FileNotFoundError:
                if os.path.dirname(path) == path:
                    return None
                path = os.path.dirname(path)
            except OSError:
                return None


class _GrowingFile:
    """One file that somebody writes. What has come is read once: a gzip stream says itself where it ends."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._inode = 0
        self._stamp: Tuple[int, int] = (0, 0)
        self._stood = 0  # looks during which it has not changed
        self._read = 0
        self._unzip = zlib.decompressobj(31)

    def look(self) -> Tuple[str, int]:
        """State and size."""
        try:
            with safe_files.stream(self._path) as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._inode or status.st_size < self._read:
                    self._inode, self._read, self._unzip = status.st_ino, 0, zlib.decompressobj(31)
                stamp = status.st_size, status.st_mtime_ns
                self._stood = self._stood + 1 if stamp == self._stamp else 0
                self._stamp = stamp
                size = status.st_size
                zipped = self._path.endswith(".gz")
                whole = self._unzipped(file.fileno()) if zipped else self._stood > 0 and _ends(file.fileno(), size)
        except FileNotFoundError:
            return "not there yet", 0
        except zlib.error:
            return "no gzip file", size
        except OSError as error:
            return error.strerror or str(error), 0
        return ("whole" if whole else "growing"), size

    def _unzipped(self, descriptor: int) -> bool:
        """Whether the stream is at its end."""
        while not self._unzip.eof:
            piece = os.pread(descriptor, _PIECE, self._read)
            if not piece:
                return False
            self._read += len(piece)
            rest = self._unzip.decompress(piece, _PIECE)
            while rest and self._unzip.unconsumed_tail:
                rest = self._unzip.decompress(self._unzip.unconsumed_tail, _PIECE)
        return True


def _ends(descriptor: int, size: int) -> bool:
    """Whether a JSON text may end there."""
    tail = os.pread(descriptor, _TAIL, max(0, size - _TAIL)).rstrip()
    return tail.endswith((b"}", b"]"))


def _ascend_rank(folder: str) -> Optional[str]:
    """`rank 3` by the file that Ascend's profilers put into their folder."""
    try:
        names = safe_files.names_in(folder, 256)
    except OSError:
        return None
    found = (re.fullmatch(RANK_FILE, name) for name in names)
    return next((f"rank {int(one['rank'])}" for one in found if one is not None), None)


def count_missing_traces(files: Iterable[WrittenTrace], ranks: int, stages: int = 1) -> int:
    """How many traces of ranks are missing or incomplete yet, where each rank has one of each stage, and there are at
    least so many stages. Ranks of other hosts that write into the same folder count once one of their traces is there.
    """
    whole: Dict[str, Set[str]] = {}
    begun: Set[str] = set()
    for one in files:
        if one.is_rank:
            begun.add(one.key)
            whole.setdefault(one.stage, set()).update({one.key} if one.state == "whole" else ())
    each = max(ranks, len(begun))
    return each * max(0, stages - len(whole)) + sum(each - len(keys) for keys in whole.values())
