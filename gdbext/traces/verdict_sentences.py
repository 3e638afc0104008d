"""The verdict for slowness in words: sentences for a person, each with its numbers."""

from __future__ import annotations

import re
from typing import List, Optional, Sequence

from gdbext.knowledge.traces import HOST_WORK, NO_KERNEL, PLAIN_HOST, HostWork
from gdbext.model.trace import TraceFile
from gdbext.traces.late_verdict import Finding, Tally

_MOST = 8  # ranks that are named


def time_of(value: float) -> str:
    """Microseconds for a person."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.2f} s"
    return f"{value / 1e3:.1f} ms" if abs(value) >= 1e3 else f"{value:.0f} us"


def percent(value: float) -> str:
    return f"{100 * value:.1f} %" if value < 0.1 else f"{100 * value:.0f} %"


def rank_names(files: Sequence[TraceFile], indexes: Sequence[int]) -> str:
    """`rank 3`, `rank 0, rank 2 and 5 more`."""
    names = [files[at].name for at in indexes]
    if len(names) > _MOST:
        return f"{', '.join(names[: _MOST - 1])} and {len(names) - _MOST + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def host_row(tally: Tally) -> Optional[HostWork]:
    """The row of what the host did; None where nothing known was seen."""
    if tally.before != "idle" or not tally.name:
        return None
    return next((row for row in HOST_WORK if re.search(row.name, tally.name)), None)


def doing_of(tally: Tally) -> str:
    """Completes "before these collectives, rank 3 ..."; "" where nothing explains it."""
    if not tally.before:
        return ""
    against = f"{time_of(tally.own)} (other ranks: {time_of(tally.peers)})"
    if tally.before == "kernel":
        longest = f", longest above its peers: {_short(tally.name)}" if tally.name else ""
        return f"had kernels for {against}{longest}"
    if tally.before == "copy":
        return f"copied for {against}"
    row = host_row(tally)
    if row is not None:
        return f"{row.doing} ({_short(tally.name)}): no kernel for {against}"
    if tally.name:
        return f"was in {_short(tally.name)}: no kernel for {against}"
    return f"{NO_KERNEL} for {against}; its host {PLAIN_HOST}"


def _short(name: str) -> str:
    return name if len(name) <= 80 else name[:77] + "..."


def summary_of(finding: Finding, files: Sequence[TraceFile], window: float, why: str) -> str:
    """Two sentences for a person."""
    part = f"{percent(finding.waiting)} of the time"
    who = rank_names(files, finding.culprits)
    several = len(finding.culprits) > 1
    if finding.cause == "late-rank":
        first = f"{who} come{'' if several else 's'} late to the collectives"
        second = f"{percent(finding.strength)} of all delay; waiting for late ranks takes {part}."
        return f"{first}: {second}{_before(finding, files)}"
    if finding.cause == "rotating-late-rank":
        first = f"At each collective another rank comes late ({who} in turn); waiting for it takes {part}."
        return first + _before(finding, files)
    if finding.cause == "imbalance":
        first = f"The ranks have unequal work: {who} come{'' if several else 's'} later than the others"
        return f"{first}; waiting takes {part}.{_before(finding, files)}"
    if finding.cause == "slow-transfer":
        where = f" of {who}" if finding.culprits else ""
        return (
            f"Transfers{where} ({finding.slow_key}) take longer than others of their size: "
            f"{percent(finding.excess)} of the time is lost; waiting for late ranks takes {part}."
        )
    if finding.cause == "not-late":
        return (
            f"The ranks arrive together: waiting for late ranks takes {part}, slow transfers {percent(finding.excess)}."
        )
    return f"It is not clear whether a rank is late: {why}."


def _before(finding: Finding, files: Sequence[TraceFile]) -> str:
    rows = sorted(finding.culprits, key=lambda at: -finding.tallies[at].delay)
    for at in rows[:1]:
        doing = doing_of(finding.tallies[at])
        return (
            f" Before these collectives, {files[at].name} {doing}."
            if doing
            else f" What {files[at].name} did before, the traces do not show."
        )
    return ""


def once_of(finding: Finding, files: Sequence[TraceFile]) -> List[str]:
    """What happened once, and is left out of the verdict."""
    one = finding.once
    if one is None:
        return []
    return [
        f"once ({one.key[0]} {one.number}) {files[one.last].name} came {time_of(one.delay)} late; it is not counted"
    ]


def evidence_of(finding: Finding, files: Sequence[TraceFile]) -> List[str]:
    """One line a culprit."""
    lines = []
    for at in sorted(finding.culprits, key=lambda at: -finding.tallies[at].delay)[:_MOST]:
        tally = finding.tallies[at]
        lines.append(
            f"{files[at].name} was the last {tally.times} times, {time_of(tally.delay)} behind the middle of the "
            f"others in all, and waited {time_of(tally.waited)} itself"
        )
        doing = doing_of(tally)
        if doing:
            lines.append(f"before it, {files[at].name} {doing}")
    return lines
