"""What is counted over all texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List

from gdbext.knowledge.log_lines.error_words import fault_in
from gdbext.model.text.patterns import regex
from gdbext.parsers.assemble.building import Process
from gdbext.parsers.line_events import LONGEST_PROBLEM

_STACKISH = regex(r"0x[0-9a-f]{6,16}\b|\.so[.\d]*\b|^\s{0,8}#\d|\bFile \"|\.(?:py|cc?|cpp|cu|h):\d+\)?$")
_STACK_MARKS = ("0x", ".so", "#", 'File "', ".py:", ".c:", ".cc:", ".cpp:", ".cu:", ".h:")
_CHATTER = regex(r"\s{0,8}\[\[\d{1,9},\d{1,9}\],\d{1,9}\]")
"""How Open MPI's runtime names itself at the start of its own debug lines."""
_SAMPLES = 3
_MOST_FIRST = 100
_MOST_ERRORS = 20  # lines of one severity


@dataclass
class Tally:
    """What is counted over all texts: how much was read, what was not understood, and what is still to be had."""

    threads: int = 0
    frames: int = 0
    prose: int = 0
    strange: int = 0
    samples: List[str] = field(default_factory=list)
    beyond: int = 0  # threads and frames that were not kept
    first: Dict[str, None] = field(default_factory=dict)  # the first log lines that are evidence, in their order
    errors: Dict[str, int] = field(default_factory=dict)  # lines that no row knows and that tell of a fault: severity

    def add(self, process: Process) -> None:
        """Count what did not come line by line."""
        self.threads += len(process.threads)
        self.frames += sum(len(thread.frames) for thread in process.threads)

    def evidence(self, text: str) -> None:
        """A log line that is evidence, in the order of the text."""
        if text and len(self.first) < _MOST_FIRST:
            self.first.setdefault(text[:LONGEST_PROBLEM])

    def unknown(self, line: str) -> None:
        """A line that is no evidence, which may tell of a fault all the same."""
        text = line[:LONGEST_PROBLEM].strip()
        fault = fault_in(text)
        if fault is not None and sum(one == fault.severity for one in self.errors.values()) < _MOST_ERRORS:
            self.errors.setdefault(text, fault.severity)

    def other(self, line: str) -> None:
        """A line that no row reads."""
        self.unknown(line)
        is_marked = any(mark in line for mark in _STACK_MARKS) and not _CHATTER.match(line)
        if is_marked and _STACKISH.search(line[:2000]):
            self.strange += 1
            sample = line.strip()[:100]
            if len(self.samples) < _SAMPLES and sample.replace("\t", " ").isprintable() and "\ufffd" not in sample:
                self.samples.append(sample)
        else:
            self.prose += 1
