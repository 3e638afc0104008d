"""Switching an engine's own debug check on in a running process: the one part of llm-check that writes to it.

FasterTransformer, old TurboMind and old RTP-LLM decide in statics of syncAndCheck: `char* level_name` is read from the
environment once, and `std::string level` is made from it at the first check. Newer RTP-LLM asks its logger.
"""

from __future__ import annotations

import platform
import struct
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import gdb

from gdbext.capture.machine.disassembly import disassembly_here
from gdbext.capture.machine.interface import Instruction
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.exceptions import read_std_string
from gdbext.inside_gdb.base.memory import NOW
from gdbext.inside_gdb.base.symbols import symbol_at
from gdbext.knowledge.engines.engine_row_kinds import SwitchRow
from gdbext.knowledge.errors.checks import SWITCHES
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.check_report import SwitchResult, SwitchResults
from gdbext.model.codes import RankState
from gdbext.model.errors import GdbextError
from gdbext.model.missing import Maybe, Missing

_WORD = "DEBUG"
_LEVEL = 4  # bytes of a logger's level
_LONGEST_SETTER, _PIECE = 1000, 50  # instructions
_GUARD_DONE = 1  # first byte of a guard variable (Itanium C++ ABI 3.3.3)

Writes = List[Tuple[int, bytes]]
"""Addresses and the bytes that stood there before."""


class CannotSwitch(Exception):
    """Why a check cannot be switched in this process."""


@dataclass
class _Done:
    row: SwitchRow
    before: Writes


class Switches:
    """Remembers what was there before, by pid."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._done: Dict[int, List[_Done]] = {}

    def switch(self, ranks: Sequence[AttachedRank], on: bool) -> SwitchResults:
        """In each of the ranks; one that fails does not stop the others."""
        results: List[SwitchResult] = []
        for rank in ranks:
            inferior = next((one for one in gdb.inferiors() if one.num == rank.number), None)
            if inferior is None or rank.state != RankState.STOPPED:
                raise GdbextError(
                    f"process {rank.process.pid} is not a stopped process", "a core file cannot be written to"
                )
            self._say(f"process {rank.process.pid}: {'switching its debug check on' if on else 'putting it back'}")
            with compat.inferior_selected(inferior):
                results += self._on(rank) if on else self._off(rank)
        return SwitchResults(tuple(results))

    def variables(self, pid: int) -> Dict[str, str]:
        """What would have switched on at start what is on now."""
        pairs = (done.row.variable.partition("=") for done in self._done.get(pid, ()))
        return {name: value for name, _, value in pairs}

    def _on(self, rank: AttachedRank) -> List[SwitchResult]:
        pid, results = rank.process.pid, []
        for row in SWITCHES:
            if any(done.row is row for done in self._done.get(pid, ())):
                results.append(_result(rank, row.function, True, "is on already; llm-check disable undoes it"))
                continue
            before: Writes = []
            try:
                text = _switch_on(row, before)
            except CannotSwitch as error:
                _undo(before)
                results.append(_result(rank, row.function, False, str(error)))
                continue
            if text is not None:
                self._done.setdefault(pid, []).append(_Done(row, before))
                results.append(_result(rank, row.function, True, text))
        if not results:
            names = ", ".join(row.function for row in SWITCHES)
            text = "the process has no symbol of them: another engine, a stripped binary, or a build without the check"
            results.append(_result(rank, names, False, text))
        return results

    def _off(self, rank: AttachedRank) -> List[SwitchResult]:
        results = []
        for done in self._done.pop(rank.process.pid, []):
            good = _undo(done.before)
            text = "the old contents were restored" if good else "the process could not be written to"
            results.append(_result(rank, done.row.function, good, text))
        return results or [_result(rank, "", False, "llm-check enable changed nothing in this process")]


def _result(rank: AttachedRank, function: str, done: bool, text: str) -> SwitchResult:
    return SwitchResult(rank.process.pid, rank.process.rank, function, done, text)


def _switch_on(row: SwitchRow, before: Writes) -> Optional[str]:
    """What was written and read back; None when the process has nothing of this row. Raises CannotSwitch."""
    if row.logger:
        return _logger_on(row, before)
    name_at, level_at = _symbol(row.level_name), _symbol(row.level)
    if name_at is None and level_at is None:
        return None
    level_guard, name_guard = _symbol(row.level_guard), _symbol(row.name_guard)
    if name_at is None or level_at is None:
        raise CannotSwitch("only a part of its statics has a symbol; this build keeps them elsewhere")
    built = level_guard is not None and _byte(level_guard) == _GUARD_DONE
    if built:
        return _rewrite_level(level_at, name_at, before)
    decided = name_guard is None or _byte(name_guard) == _GUARD_DONE
    text = _literal_address(_WORD)
    if text is None:
        raise CannotSwitch(f'the text "{_WORD}" stands nowhere in its own code: this build does not compare with it')
    _write(name_at, struct.pack("<Q", text), before)
    if not decided and name_guard is not None:  # it would be read from the environment over what we wrote
        _write(name_guard, bytes([_GUARD_DONE]), before)
    if NOW.read_cstring(NOW.read_pointer(name_at) or 0, 16) != _WORD:
        raise CannotSwitch("the value read back differs from the value written")
    return f'level_name is "{_WORD}" now (read back); the next check makes its level from it'


def _rewrite_level(level_at: int, name_at: int, before: Writes) -> str:
    """The std::string was made already: its text becomes DEBUG in the place that it has."""
    was = read_std_string(level_at)
    if was == _WORD:
        raise CannotSwitch(f"is on already: its level is {_WORD}")
    start = NOW.read_pointer(level_at)
    if was is None or not start:
        raise CannotSwitch("its level is not a std::string of libstdc++ (GCC 5 and newer)")
    capacity = 15 if start == level_at + 16 else NOW.read_pointer(level_at + 16) or 0
    if capacity < len(_WORD):
        raise CannotSwitch(f"its level {was!r} has no room for {_WORD}")
    _write(start, _WORD.encode() + b"\0", before)
    _write(level_at + 8, struct.pack("<Q", len(_WORD)), before)
    if read_std_string(level_at) != _WORD:
        raise CannotSwitch("the value read back differs from the value written")
    return f'level was "{was[:40]}" and is "{_WORD}" now (read back)'


def _logger_on(row: SwitchRow, before: Writes) -> Optional[str]:
    place = _symbol(row.logger)
    if place is None:
        return None
    offset = _field_by_type(row)
    if offset is None:
        by_code = _field_by_code(row)
        if isinstance(by_code, Missing):
            raise CannotSwitch(
                f"where the logger keeps its level is not known: there is no debug information of {row.type}, and "
                f"{row.setter} {by_code.reason}; use the engine's own SetLogLevel"
            )
        offset = by_code
    at = place + offset
    was = int.from_bytes(NOW.read(at, _LEVEL) or b"\xff", "little")
    if not 0 < was <= row.highest:
        raise CannotSwitch(f"its level {was} is invalid; the logger does not exist yet")
    if was >= row.value:
        raise CannotSwitch(f"is on already: the logger's level is {was}")
    _write(at, row.value.to_bytes(_LEVEL, "little"), before)
    if NOW.read(at, _LEVEL) != row.value.to_bytes(_LEVEL, "little"):
        raise CannotSwitch("the value read back differs from the value written")
    return f"the logger's level was {was} and is {row.value} (DEBUG) now (read back)"


def _field_by_type(row: SwitchRow) -> Optional[int]:
    """Where the level stands, by debug information."""
    try:
        field = next(one for one in gdb.lookup_type(row.type).fields() if one.name == row.field)
    except (gdb.error, StopIteration):
        return None
    return field.bitpos // 8 if field.type is not None and int(field.type.sizeof) == _LEVEL else None


def _field_by_code(row: SwitchRow) -> Maybe[int]:
    """Where the level stands, by the code of the function that sets it."""
    place = _symbol(row.setter)
    reader = disassembly_here()
    if reader is None:
        return Missing(f"is {platform.machine()} code, which is not read")
    return reader.stored_at(_code_at(place, reader.settings)) if place else Missing("is not a separate function here")


def _code_at(start: int, settings: Mapping[str, str]) -> List[Instruction]:
    """The instructions of the function that begins there."""
    name = symbol_at(start) or ""
    found: List[Instruction] = []
    try:
        with compat.settings(settings):
            while len(found) < _LONGEST_SETTER:
                for row in gdb.newest_frame().architecture().disassemble(start, count=_PIECE):
                    if not (symbol_at(row["addr"]) or "").startswith(name.partition(" in section")[0]):
                        return found
                    found.append(Instruction(int(row["addr"]), str(row["asm"])))
                    start = row["addr"] + row["length"]
    except (gdb.error, RuntimeError):
        pass
    return found


def _symbol(mangled: str) -> Optional[int]:
    """Address of a data symbol; no debug information is needed."""
    if not mangled:
        return None
    try:
        return int(gdb.parse_and_eval(f"(unsigned long) &{mangled}")) & ((1 << 64) - 1)
    except gdb.error:
        return None


def _byte(address: int) -> Optional[int]:
    data = NOW.read(address, 1)
    return data[0] if data else None


def _literal_address(text: str) -> Optional[int]:
    """Where the literal that the check compares with stands: it lives as long as the code does."""
    wanted = text.encode() + b"\0"
    inferior = gdb.selected_inferior()
    for start, end in _read_only_parts():
        try:
            found = inferior.search_memory(start, end - start, b"\0" + wanted)
        except gdb.error:
            continue
        if found is not None:
            return int(found) + 1
    return None


def _read_only_parts() -> List[Tuple[int, int]]:
    """.rodata of the program and its libraries, the small ones first."""
    parts: List[Tuple[int, int]] = []
    for line in gdb.execute("info files", to_string=True).splitlines():
        words = line.split()
        if len(words) >= 5 and words[1] == "-" and words[4] == ".rodata":
            parts.append((int(words[0], 16), int(words[2], 16)))
    return sorted(parts, key=lambda part: part[1] - part[0])


def _write(address: int, data: bytes, before: Writes) -> None:
    was = NOW.read(address, len(data))
    if was is None:
        raise CannotSwitch(f"memory at {address:#x} cannot be read")
    try:
        gdb.selected_inferior().write_memory(address, data)
    except gdb.error as error:
        raise CannotSwitch(f"memory at {address:#x} cannot be written: {error}") from None
    before.append((address, was))


def _undo(before: Writes) -> bool:
    """Put the bytes back, the last write first."""
    good = True
    for address, was in reversed(before):
        try:
            gdb.selected_inferior().write_memory(address, was)
        except gdb.error:
            good = False
    return good
