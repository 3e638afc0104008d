"""Lines of logs in sentences: who reports what, and what that means."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Tuple

from gdbext.analysis.causes.watchdog_logs import watchdogs_gave_up
from gdbext.analysis.failures.error_codes import in_message
from gdbext.analysis.failures.fatal_signal import ended_by
from gdbext.analysis.failures.system_errors import errno_in
from gdbext.analysis.logs.lines_of_logs import (
    LONGEST_PIECE,
    Line,
    all_lines,
    fault_before,
    lines,
    meaning,
    piece_of,
)
from gdbext.analysis.logs.progress_in_logs import announced, counted_by_one, how_far
from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import JobView, Party, party_of
from gdbext.analysis.view.wording import label_list, start, who
from gdbext.knowledge.errors import LIBRARIES
from gdbext.knowledge.errors.infiniband import COMPLETIONS
from gdbext.knowledge.errors.xid import XIDS
from gdbext.knowledge.labels import WAIT_GROUPS
from gdbext.model.job import ONLY, RankSnapshot
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import Evidence

_NCCL_ERRORS = next(library.names for library in LIBRARIES if library.type == "ncclResult_t")
_XID, _NUMBER = map(regex, (r"\bXid:? (\d{1,3})\b", r"\d{1,6}"))
_MOST_QUOTED = 3
LONGEST_QUOTE = 160
_NCCL_TEXT = regex(r"\bunhandled (?:system|cuda) error\b|remote process exited or there was a network error")
_NCCL_CALL = regex(r"\b(nccl[A-Z]\w{2,40})\(\) at ")
_WORDS = 5  # from which on a line says something
_SAME = 60  # characters at the end of a line


def log_line_evidence(view: JobView, best: Candidate) -> Tuple[Evidence, ...]:
    """The most telling lines as evidence, each kind of line once, without what the candidate quotes itself."""
    shown: Dict[str, Evidence] = {}
    own = tuple(one.text for one in best.evidence)
    for line in lines(view):
        if any(text.endswith(line.text[-_SAME:]) for text in own):
            continue
        if line.rule.id not in shown and len(shown) < _MOST_QUOTED:
            text = line.text if len(line.text) <= LONGEST_QUOTE else line.text[: LONGEST_QUOTE - 1] + "…"
            index = line.process.index if line.process is not None else None
            number = errno_in(line.text)
            shown[line.rule.id] = Evidence(f"{line.rule.means}: {text}{f' ({number})' if number else ''}", index)
    return tuple(shown.values())


def last_words(view: JobView, party: Party) -> str:
    """The most telling line in which a process tells of its own end, in quotes; else ""."""
    own = [line for line in lines(view) if line.rule.wait and WAIT_GROUPS[line.rule.wait] == "fatal"]
    own = [line for line in own if line.process is None or line.process.index == party.index]
    own = [line for line in own if not line.text.rstrip().endswith(":")]  # the head of what is not in the text
    said = max(own, key=lambda line: min(len(line.text.split()), _WORDS), default=None)
    return f"{_closed(excerpt(said))}{_system_error(said)}{_returned_by_nccl(view)}" if said is not None else ""


def party_of_log_line(view: JobView) -> Optional[Party]:
    """Whose line says most, where no stack was read: where the lines name nobody, that is the only process."""
    telling = next((line.process for line in lines(view) if line.process is not None), None)
    if telling is None and len(view.snapshot.processes) == 1:
        telling = view.snapshot.processes[0]
    return party_of(view, telling) if telling is not None else None


def without_stacks(view: JobView) -> str:
    """What can be said where no stack of a rank was read: the line that tells most, and whose it is."""
    telling = next((line for line in lines(view) if line.process is not None), None)
    if telling is None or telling.process is None:
        if not any(process.threads for process in view.snapshot.processes):
            shown = next(iter(lines(view)), None)
            if shown is not None:
                return quotation(view, shown)
            return "No stack was read, and no log line names a cause that gdbext knows."
        return _helpers_alone(view)
    counted = watchdogs_gave_up(view) or announced(view, telling)
    if counted:
        return f"{counted}{first_fault(view, telling)}"
    alike = _who_says(view, telling)
    others = len({line.process.index for line in lines(view) if line.process is not None}) - len(alike)
    also = (
        "The log of another process reports a problem"
        if others == 1
        else f"The logs of {others} others report problems"
    )
    rest = f" {also} too." if others else ""
    far = how_far(view, telling.process) if counted_by_one(view) else ""
    returned = _returned_by_nccl(view)
    return f"{quotation(view, telling)}{returned}{rest}{far}{first_fault(view, telling)}"


def _helpers_alone(view: JobView) -> str:
    names = [
        " ".join(dict.fromkeys(filter(None, (thread.id, thread.name))))
        for process in view.snapshot.processes
        for thread in process.threads
        if thread.calls
    ]
    if len(names) == 1:
        # A thread without a number or a name in the text is counted as the first.
        named = f" (thread {', '.join(names[0].split(' ', 1))})" if names[0] != "1" else ""
        return f"The only thread whose stack was read{named} is idle, as it would be in a healthy process."
    told = f"{len(names)} threads that were read ({label_list(names)})" if names else "threads that were read"
    all_of = f"Both threads that were read ({label_list(names)})" if len(names) == 2 else f"All {told}"
    return f"{all_of} are idle, as they would be in a healthy process."


def quotation(view: JobView, line: Line, means: Optional[str] = None, said: str = "") -> str:
    """`The log of rank 3 reports: "...". It means ...`: the words of the log, and then what the row says of them."""
    told = f"{meaning(line)}{number_in(line)}" if means is None else means
    quoted = f"{_log_of(view, line)}: {_closed(said or excerpt(line))}{_system_error(line)}"
    return f"{quoted} {start(told)}." if told else quoted


def _system_error(line: Line) -> str:
    """` Errno 14 is EFAULT (bad address).`, where the line has the number alone."""
    told = errno_in(line.text)
    return f" {start(told)}." if told else ""


def _closed(quote: str) -> str:
    """The quote as the end of a sentence."""
    return quote if quote.endswith(('."', '!"', '?"')) else f"{quote}."


def _who_says(view: JobView, line: Line) -> List[RankSnapshot]:
    """The processes whose logs have that line, but for numbers and names."""
    known = [one for one in lines(view) if one.rule.id == line.rule.id and one.process is not None]
    alike = [one.process for one in known if one.process and _shape(one) == _shape(line)]
    return list({process.index: process for process in alike}.values())


def _shape(line: Line) -> str:
    """The words of the excerpt without those that have digits."""
    return " ".join(word for word in excerpt(line)[:_SAME].split() if not re.search(r"\d|…", word))


def _log_of(view: JobView, line: Line) -> str:
    """`The log reports`, where nobody else could have written the line; of several `The logs ... report, for
    example`."""
    groups = _groups_in(line)
    worker = groups.get("worker") or groups.get("worker2")  # it does not report its own end
    of_worker = worker is not None and line.process is not None and worker == str(line.process.pid)
    other = bool(ranks_in(line)) or of_worker or (line.rule.of_device and is_witness(line))
    if line.rule.of_kernel and (line.process is None or line.process.rank is None):
        pid = line.process.pid if line.process is not None else None
        named = pid is not None and re.search(rf"\b{pid}\b", line.text) is not None
        return f"The kernel log reports for pid {pid}" if named else "The kernel log reports"
    if line.process is None or line.process.label == ONLY or other:
        return "The log reports"
    several = [party_of(view, process) for process in _who_says(view, line)]
    return (
        f"The logs of {who(several)} report, for example"
        if len(several) > 1
        else f"The log {line.process.log_of} reports"
    )


def first_fault(view: JobView, line: Line) -> str:
    """` Before that, ...`: the first error of the network, of memory or of a driver, which may be the cause."""
    first = fault_before(view, line)
    if first is None:
        return ""
    told = f"{meaning(first)}{number_in(first)}.{_system_error(first)}"
    return f" An earlier line says {excerpt(first)}: {told} That may be the cause."


def _returned_by_nccl(view: JobView) -> str:
    """` The text is that of ncclSystemError: ...`, where a program prints NCCL's words without its name."""
    texts = [text for _, text in all_lines(view)]
    found = next(filter(None, map(_NCCL_TEXT.search, texts)), None)
    error = in_message(found[0], "ncclResult_t") if found is not None else None
    if error is None or any(error.name in text for text in texts):
        return ""
    call = next(filter(None, map(_NCCL_CALL.search, texts)), None)
    return f" That is NCCL's {error.name}{f', from {call[1]}' if call is not None else ''}: {error.meaning}."


def _groups_in(line: Line) -> Dict[str, Any]:
    """What its row names in the line: the number of an Xid, the pid of a worker."""
    found = re.search(line.rule.pattern, line.text)
    return found.groupdict() if found else {}


def is_witness(line: Line) -> bool:
    """Whether the process of a line only tells of a fault: of a device that it used, or of a worker of its own."""
    named = _groups_in(line)
    number = named.get("xid")
    if line.process is None or line.process.rank is not None:
        return line.process is None
    if named.get("worker"):
        return True
    if not line.rule.of_device or line.process.threads:
        return False
    return number is None or int(number) not in XIDS or not XIDS[int(number)].of_program


def excerpt(line: Line) -> str:
    """`"...the words that the row knows..."`: the line in short, from where the row knows it."""
    text = " ".join(line.text.split())
    match = re.search(line.rule.pattern, text)
    first = max(match.start(), match.end() - LONGEST_PIECE) if match else 0  # who is named stands at its end
    first = max(0, min(first, len(text) - LONGEST_PIECE))
    end = len(text) if len(text) - first <= LONGEST_PIECE * 3 // 2 else first + LONGEST_PIECE
    word = text.rfind(" ", 0, first) + 1
    first = word if first - word < LONGEST_PIECE // 10 else first
    return f'"{piece_of(text, first, end)}{_end_of(text, end)}"'


def _end_of(text: str, end: int) -> str:
    """The last words of a long line, where errors give the reason."""
    if end >= len(text):
        return ""
    words = text[len(text) - LONGEST_PIECE // 2 :].partition(" ")[2]
    return f" {words}" if words else ""


def ranks_in(line: Line) -> Tuple[int, ...]:
    groups = [value for name, value in _groups_in(line).items() if name.startswith("rank")]
    return tuple(int(number) for value in groups if value for number in _NUMBER.findall(value))


def number_in(line: Line) -> str:
    """`, Xid 79 on GPU 0000:3b:00 (the GPU has fallen off the bus)`: the number that the line names, its meaning."""
    groups = _groups_in(line)
    if groups.get("xid"):
        row = XIDS.get(int(groups["xid"]))
        return f", Xid {groups['xid']} on GPU {groups['bus']}{f' ({row.meaning})' if row else ''}"
    if groups.get("nccl"):
        return f": {_NCCL_ERRORS[int(groups['nccl'])][0]}"
    code = next((value for name, value in groups.items() if name.startswith("code") and value), None)
    if code is not None:
        return f" with code {code}{ended_by(int(code))}"
    named = _XID.search(line.text)
    if named and int(named[1]) in XIDS:
        return f": Xid {named[1]} ({XIDS[int(named[1])].meaning})"
    meaning = COMPLETIONS.get(int(groups.get("completion") or 0))
    return f": {meaning}" if meaning else ""
