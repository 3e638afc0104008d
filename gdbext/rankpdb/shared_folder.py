"""Waiting for a rank of another host through a folder that both see.

A rank that is debugged has a sheet there: which places it has passed, and where others wait for it. The time of the
file is its sign of life. Ranks of other hosts that have found a sheet lay a mark beside it. When the rank has ended and
all of them have been there, the last one takes everything away; until then one may come late and want to read it.
What a killed rank leaves is known by its process on its own host, and elsewhere by a long silence.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from typing import Dict, Optional, Set, Tuple

from gdbext.rankpdb.host_folder import Place, RankRecord, RankRecords, age_of_this_process
from gdbext.rankpdb.identity import Identity, integer_or_none

STALE = 60.0
"""Seconds without a sign after which a process of another host, or of another run, counts as dead: thirty periods of
an open prompt, six of a rank that runs on. One that only stood still writes its sheet anew."""


@dataclass(frozen=True)
class Seen:
    """What a look at another rank has shown. `sign` changes while its prompt is open at the place, else it is 0."""

    passed: bool = False
    ended: bool = False
    sign: float = 0.0


@dataclass
class _Known:
    """The sheet of another rank, that we have found."""

    name: str
    sign: float
    when: float  # we saw that sign
    gone: float = 0.0  # since when we have not seen the sheet


class Folder:
    """Raises PermissionError when the folder is not ours."""

    name = "the folder GDBEXT_PDB_SHARED"

    def __init__(self, me: Identity, shared: str, silence: float) -> None:
        """`silence`: seconds after which a prompt of our own run counts as dead."""
        again = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self.open: Set[Place] = set()
        self._me, self._silence = me, silence
        self._job = f"{me.job}-{integer_or_none(again) or 0}"
        self._sheets = RankRecords(shared, self._job, me.rank)
        self._passed: Dict[str, int] = {}
        self._known: Dict[int, _Known] = {}
        self._begun: Optional[float] = None
        self._written = self._closed = False
        self._lock = threading.RLock()

    # --- the debugged rank ---

    def opens(self, place: Place) -> None:
        with self._lock:
            self.open.add(place)
            self._write()

    def passes(self, place: Place) -> None:
        with self._lock:
            self.open.discard(place)
            self._passed[place[0]] = max(place[1], self._passed.get(place[0], 0))
            self._write()

    def beat(self) -> None:
        """A sign of life. The sheet is written anew when somebody took it for a dead one's."""
        with self._lock, contextlib.suppress(OSError):  # a network file system may come back
            if self._written and not self._closed and not self._sheets.touch():
                self._write()

    def _write(self, ended: bool = False) -> None:
        here = self._me.here or range(0)
        readers = {rank for rank in range(self._me.world or 0) if rank not in here}
        self._sheets.write(
            RankRecord(
                job=self._job,
                host="",
                pid=0,
                start="",
                sign=0.0,
                passed=self._passed,
                open=sorted(self.open),
                readers=readers,
                ended=ended,
            )
        )
        self._written = True

    # --- the ranks that wait ---

    def look(self, rank: int, place: Place) -> Seen:
        """How far a rank of another host is."""
        try:
            with self._lock:
                return self._look(rank, place)
        except PermissionError:
            raise
        except OSError:  # a network file system may come back
            return Seen()

    def _look(self, rank: int, place: Place) -> Seen:
        known = self._known.get(rank)
        sheet = self._sheets.read(known.name) if known else None
        if sheet is None:
            known, sheet = self._find(rank, known)
        now = time.monotonic()
        if known is None:
            return Seen()
        if sheet is None:  # it has ended; or it stood still until others took it for dead, and may come back
            known.gone = known.gone or now
            return Seen(ended=known.gone - known.when < self._silence or now - known.gone > self._silence)
        if sheet.sign != known.sign:
            known.sign, known.when = sheet.sign, now
        if known.gone:
            known.gone = 0.0
            self._sheets.mark(f"{known.name}.{self._me.rank}")  # it went with the sheet
        passed = sheet.passed.get(place[0], 0) >= place[1]
        return Seen(passed, sheet.ended and not passed, sheet.sign if place in sheet.open else 0.0)

    def _find(self, rank: int, known: Optional[_Known]) -> Tuple[Optional[_Known], Optional[RankRecord]]:
        """The sheet of a rank of this run, with our mark beside it."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            self._began()  # also finds out whether the folder is ours
        for name in self._sheets.names():
            sheet = self._sheets.read(name) if name.startswith(f"{self._job}.{rank}.") else None
            if sheet is not None and self._is_of_this_run(sheet):
                found.append((sheet.sign, name))
        if not found:
            return known, None
        sign, name = max(found)
        mark = f"{name}.{self._me.rank}"
        self._sheets.mark(mark)
        known = self._known[rank] = _Known(name, sign, time.monotonic())
        sheet = self._sheets.read(name)
        if sheet is None:  # our mark was the last one: it has ended, unless others had taken it for dead
            self._sheets.remove({mark})
            with contextlib.suppress(FileNotFoundError):
                known.when = known.when if self._sheets.now() - sign < self._silence else 0.0
            self._sheets.leave()
        elif sheet.ended:  # perhaps without having seen our mark: then we tidy up
            self.sweep()
        return known, sheet

    # --- nothing stays behind ---

    def close(self) -> None:
        """At the end of the process: ours, unless others have still to read it, and what dead ones have left."""
        if not self._lock.acquire(timeout=self._silence):
            return  # the file system hangs, and a process must not hang with it
        try:
            with contextlib.suppress(OSError):
                if self._written and not self._closed:
                    self.open.clear()
                    self._write(ended=True)  # first this, then a look at the marks: the last one sees all of both
                self._closed = True
            self.sweep()
        finally:
            self._lock.release()

    def sweep(self) -> None:
        """Remove what dead ranks have left. Others may do the same just now."""
        with self._lock, contextlib.suppress(OSError):
            found = self._sheets.names()
            now = self._sheets.now() if found else 0.0
            for name, belonging in found.items():
                with contextlib.suppress(OSError):
                    if self._is_over(name, belonging, now):
                        self._sheets.remove(belonging)
            self._sheets.leave()

    def _is_over(self, name: str, belonging: Set[str], now: float) -> bool:
        if name not in belonging or name[0] == ".":  # marks without a sheet; one that was being written
            return all(self._sheets.age(one, now) > STALE for one in belonging)
        sheet = self._sheets.read(name)
        if sheet is None:
            return False
        lives: Optional[bool] = False  # it has written its last word, though its process may need a moment to end
        if not sheet.ended:
            lives = not self._closed if name == self._sheets.mine else sheet.is_alive()
        silent, ours = now - sheet.sign, self._is_of_this_run(sheet)
        limit = self._silence if ours and sheet.open else STALE
        if lives or not (sheet.ended or lives is False or silent > limit):
            return False
        all_have_read = {f"{name}.{reader}" for reader in sheet.readers} <= belonging
        return all_have_read or (not ours and (silent > STALE or sheet.job == self._job))

    def _is_of_this_run(self, sheet: RankRecord) -> bool:
        """Another run may have had the same address and port; its last sign came before this process began."""
        return sheet.job == self._job and sheet.sign >= self._began()

    def _began(self) -> float:
        if self._begun is None:
            self._begun = self._sheets.now() - age_of_this_process()
        return self._begun
