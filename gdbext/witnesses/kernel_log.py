"""Xid lines of the kernel's log since the job began: faults of GPUs as the driver reported them."""

from __future__ import annotations

import os
import subprocess
from typing import Iterator, List, Optional, Tuple

from gdbext.knowledge.errors.xid import XID_LINE, meaning_of
from gdbext.model.missing import Maybe, Missing
from gdbext.model.text.patterns import regex
from gdbext.model.witness import Statement, Witness
from gdbext.witnesses.question import Asked, Question, absent_witness, present_witness

NAME = "kernel log"
_DEVICE = "/dev/kmsg"
_MOST_RECORDS = 100_000
_RECORD = 8192  # bytes; the kernel's longest
_XID = regex(XID_LINE)
_PRINTED = regex(r"<\d+>\[ *(\d+\.\d+)\] (.*)")

Line = Tuple[float, str]
"""Seconds after boot, and the text."""


def ask(question: Question) -> Witness:
    """Every Xid in the time of the job, with its meaning."""
    lines = read_kernel_log()
    if isinstance(lines, Missing):
        return absent_witness(NAME, lines.reason)
    since = question.started or 0.0
    statements = tuple(xid_statements(lines, since, question))
    return present_witness(NAME, f"{len(statements)} Xid since the job began" if statements else "no Xid", statements)


def read_kernel_log(device: str = _DEVICE) -> Maybe[List[Line]]:
    """The log as far as it is kept. Never waits for a next line."""
    try:
        descriptor = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        found = _printed()
        return found if found is not None else Missing(f"{device}: {(error.strerror or 'unreadable').lower()}")
    try:
        return list(_records(descriptor))
    finally:
        os.close(descriptor)


def _records(descriptor: int) -> Iterator[Line]:
    """`priority,number,microseconds,flags;text` a read (Documentation/ABI/testing/dev-kmsg)."""
    for _ in range(_MOST_RECORDS):
        try:
            record = os.read(descriptor, _RECORD)
        except BrokenPipeError:  # the ring overtook us: the next read goes on behind the gap
            continue
        except OSError:  # EAGAIN: the end
            return
        if not record:
            return
        head, _, text = record.decode("utf-8", "replace").partition(";")
        fields = head.split(",")
        if len(fields) >= 3 and fields[2].isdigit():
            yield int(fields[2]) / 1e6, text.partition("\n")[0]


def _printed() -> Optional[List[Line]]:
    """By the dmesg program, which may read where the device is missing (containers)."""
    try:
        done = subprocess.run(["dmesg", "--raw"], capture_output=True, timeout=1.0, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    found = (_PRINTED.match(line) for line in done.stdout.decode("utf-8", "replace").splitlines()[-_MOST_RECORDS:])
    return [(float(one.group(1)), one.group(2)) for one in found if one]


def xid_statements(lines: List[Line], since: float, question: Question) -> Iterator[Statement]:
    """One statement an Xid line from `since` on. The pid in it is the host's."""
    by_pid = question.by_pid()
    for at, text in lines:
        found = _XID.search(text) if at >= since else None
        if found is None:
            continue
        bus, number, pid, name, rest = found.groups()
        row = meaning_of(int(number))
        one: Optional[Asked] = by_pid.get(int(pid)) if pid and pid.isdigit() else None
        owner = one.label if one else f"pid {pid}" if pid and pid.isdigit() else "no process named"
        says = "fact" if not row.ends_work else "gpu-fault" if one else "gpu-error"
        details = f": {rest.strip()}" if rest.strip() else ""
        yield Statement(
            f"Xid {number} on GPU {bus} ({owner}{f', {name}' if name else ''}): {row.meaning}{details}",
            says,
            one.index if one else None,
        )
