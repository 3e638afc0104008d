"""What MPICH lists of the messages that a process waits for, and of those that it has and nobody asked for."""

from __future__ import annotations

from typing import List, Match, Pattern, Sequence

from gdbext.analysis.view.wording import label_list
from gdbext.knowledge.log_lines.timeouts_and_warnings import ANY_SOURCE, ANY_TAG, PENDING_RECEIVE, UNMATCHED_MESSAGE
from gdbext.model.text.patterns import regex

_RECEIVE, _MESSAGE = map(regex, (PENDING_RECEIVE, UNMATCHED_MESSAGE))


def pending_messages(lines: Sequence[str]) -> str:
    """`MPICH lists a receive from rank 1 (tag 0) as pending.`; "" where it lists none."""
    wanted, come = (_envelopes(pattern, lines) for pattern in (_RECEIVE, _MESSAGE))
    if not wanted:
        return ""
    told = f"MPICH lists as pending: {label_list([f'a receive from {one}' for one in wanted])}."
    if come:
        told += f" No receive has matched {label_list([f'the message that came from {one}' for one in come])}."
    return f"{told} The ranks are those of the communicator."


def _envelopes(pattern: Pattern[str], lines: Sequence[str]) -> List[str]:
    return list(dict.fromkeys(_envelope(match) for match in map(pattern.match, lines) if match is not None))


def _envelope(match: Match[str]) -> str:
    source = "any rank" if match["source"] == ANY_SOURCE else f"rank {match['source']}"
    tag = "any tag" if match["tag"] == ANY_TAG else f"tag {match['tag']}"
    return f"{source} ({tag})"
