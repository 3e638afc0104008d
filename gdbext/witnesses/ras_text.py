"""RAS' answer in text (NCCL 2.24 to 2.28.3): the table of communicators and the details of what is wrong.

The lines are those of NCCL 2.26.2 and 2.28.9 (strings of the PyPI wheels). Only ranks that differ are named in it.
"""

from __future__ import annotations

from typing import List, Mapping, Optional, Tuple

from gdbext.model.text.patterns import regex
from gdbext.model.witness import Statement
from gdbext.witnesses.addresses import is_this_host
from gdbext.witnesses.question import Asked

_MOST_LINES = 200_000
_LONGEST = 1000  # characters of a line
_VERSION = regex(r"NCCL version (\S{1,40})")
_GROUP = regex(r"#\d+-\d+ \(([0-9a-f]{1,16})\) (INCOMPLETE|MISMATCH|ERROR)")
_SECTION = regex(r"(DEAD|INCOMPLETE|TIMEOUT)$")
_MAJORITY = regex(r"(\d{1,9}) ranks have launched up to operation (\d{1,18})")
_LAUNCHED = regex(r"Rank (\d{1,9}) has (?:launched up to operation (\d{1,18})|not launched any operations)")
_RANK = regex(r"Rank (\d{1,9})\b(.{0,400})")
_DEAD = regex(r"Process (\d+) on node (\S+) managing")
_WHO = regex(r"managed by process (\d+) on node (\S+)")
_KIND = regex(r"different (\w+ )?operation counts")
_ROW = regex(r"(?:\s*\d+){3}\s+[\d-]+\s+\d+\s+\d+\s+(\S+)\s+(\S+)$")


def statements(text: str, by_pid: Mapping[int, Asked]) -> Tuple[str, List[Statement]]:
    """(who answered, what it says). Raises `ValueError` for anything that is not RAS' report."""
    version = _VERSION.search(text)
    if version is None:
        raise ValueError("it names no NCCL version")
    reading = _Reading(by_pid)
    for line in text.splitlines()[:_MOST_LINES]:
        reading.line(line[:_LONGEST].strip())
    noun = "group" if reading.groups == 1 else "groups"
    return f"NCCL {version.group(1)}, {reading.groups} {noun} of communicators", reading.finish()


class _Reading:
    """Where in the report we are."""

    def __init__(self, by_pid: Mapping[int, Asked]) -> None:
        self._by_pid = by_pid
        self._said: List[Statement] = []
        self._name, self._section, self._kind = "", "", "operations"
        self._majority: Optional[int] = None
        self._sound = True
        self.groups = 0

    def line(self, line: str) -> None:
        group, section, row = _GROUP.match(line), _SECTION.match(line), _ROW.match(line)
        if group:
            self._name, self._section, self._majority = f"communicator 0x{group.group(1)}", group.group(2), None
        elif section:
            self._name, self._section = "", section.group(1)
        elif row:
            self.groups += 1
            self._sound = self._sound and row.groups() == ("RUNNING", "OK")
        elif self._section == "DEAD":
            self._dead(line)
        elif self._section == "MISMATCH":
            self._mismatch(line)
        elif self._section in ("ERROR", "INCOMPLETE") and self._name:
            self._problem(line)

    def _dead(self, line: str) -> None:
        found = _DEAD.match(line)
        if found:
            text = f"process {found.group(1)} on {found.group(2)[:80]} does not answer its peers"
            self._said.append(Statement(text, "dead", self._index(found.group(1), found.group(2))))

    def _mismatch(self, line: str) -> None:
        kind, majority, launched = _KIND.search(line), _MAJORITY.match(line), _LAUNCHED.match(line)
        if kind:
            self._kind, self._majority = (kind.group(1) or "operations").strip()[:40], None
        elif majority:
            self._majority = int(majority.group(2))
        elif launched:
            number = int(launched.group(2) or 0)
            late = self._majority is not None and number < self._majority
            text = f"rank {launched.group(1)} of {self._name} has launched {number} {self._kind}"
            text += f", others {self._majority}" if self._majority is not None else ""
            self._said.append(Statement(text, "behind" if late else "fact", self._who(line)))

    def _problem(self, line: str) -> None:
        found = _RANK.match(line)
        if found:
            error = self._section == "ERROR"
            what = found.group(2).partition("--")[0].strip()[:80] or "is missing"
            text = f"rank {found.group(1)} of {self._name} {what}"
            self._said.append(Statement(text, "gone-wrong" if error else "fact", self._who(line)))

    def _who(self, line: str) -> Optional[int]:
        found = _WHO.search(line)
        return self._index(found.group(1), found.group(2)) if found else None

    def _index(self, pid: str, node: str) -> Optional[int]:
        one = self._by_pid.get(int(pid)) if len(pid) < 12 else None
        return one.index if one is not None and is_this_host(node[:256]) else None

    def finish(self) -> List[Statement]:
        if self.groups and self._sound and not self._said:
            return [
                Statement("all ranks of every communicator are running and launched the same operations", "in-sync")
            ]
        return self._said
