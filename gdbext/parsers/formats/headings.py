"""What people write between stacks: headings that say which process or thread follows."""

from __future__ import annotations

from typing import Match, Optional, Tuple

from gdbext.knowledge.log_lines.last_words import SAVED, SAVED_BY_SCRIPT, SAVED_BY_SHELL, TEE
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex
from gdbext.parsers.formats.format_row import Row, process_head, row
from gdbext.parsers.line_events import Event, FrameLine, FramesMissing, LogMessage, ProcessHead, Several, ThreadHead

_RANK = regex(r"(?i)\brank[ _#:=-]{0,3}(\d{1,6})\b")
_PID = regex(r"(?i)\b(?:pid|process)[ _#:=]{0,3}(\d{2,9})\b")
_HOST = regex(r"(?i)\b((?:node|host|worker)[ _-]?\d{1,6})\b")
_OF_A_PROCESS = regex(r"(?i)\b(?:ranks?|nodes?|process(?:es)?|workers?|hosts?|pid|gpu)(?:[ _#:=-]{0,3}\d+)?\b")
_OF_A_LOOK = regex(
    r"(?i)\b(?:first|second|third|fourth|last|next|another|other|new|\d(?:st|nd|rd|th)?|re-?sampled?)\b.{0,20}"
    r"\b(?:dump|sample|trace|stack|look|snapshot|run|attempt|capture|backtrace)s?\b|\b(?:dump|sample|snapshot) #?\d\b"
)
_THREAD = regex(r"\b(?i:thread|tid|lwp|task:\S{1,40})(?i: id)?[ #:=(]{0,3}(0x[0-9a-f]{4,16}|\d{1,9})\b")
_HOLDS_GIL = regex(r"(?i)\bthread\b.{0,60}\b(?:has|holds|holding|owns|owning) the GIL\b")
_A_THREAD = regex(r"(?i)\w*thread\w*(?:[-_ ]\d+)?\Z|\w+[-_]\d+\Z|\w*(?:main|worker|executor|proxy|watchdog)\w*\Z")
_SENTENCE = regex(r"[a-z)]\. |, (?:and|but|so|which) ")
_LONGEST = 120
_SAVED = regex(SAVED_BY_SHELL)
_RANK_PHRASE = (
    r"(?:(?:global|local|other|another|all|the|on|for|of|in|this is|here is|stack|backtrace|bt|trace|dump) ){0,4}"
)


def parse_heading(text: str) -> ProcessHead:
    """What a heading says of the process whose stacks follow."""
    rank, pid, host = _RANK.search(text), _PID.search(text), _HOST.search(text)
    return ProcessHead(
        title=text,
        pid=int(pid.group(1)) if pid else None,
        rank=int(rank.group(1)) if rank else None,
        host=host.group(1) if host and not rank else None,
    )


def _decorated(match: Match[str]) -> Optional[Event]:
    text = match.group("text").strip()
    if _OF_A_PROCESS.search(text):
        return parse_heading(text)
    return ThreadHead(firm=False) if _OF_A_LOOK.search(text) else _mention(text)


def _plain_heading(match: Match[str]) -> Optional[Event]:
    text = match.string.strip()
    return None if len(text) > _LONGEST or _SENTENCE.search(text) else parse_heading(text.rstrip(":. "))


def _short_heading(match: Match[str]) -> Optional[Event]:
    """`rank0 first sample`, `TP1-3`, `rank 2, dumped a minute later`."""
    text = match.string.strip()
    return None if _SENTENCE.search(text) else parse_heading(text.rstrip(":. "))


def _introduced_stack(match: Match[str]) -> Optional[Event]:
    """`Stack of rank 3 while it hangs:`"""
    text = match.string.strip()
    if len(text) > _LONGEST or not text.endswith(":") or len(_RANK.findall(text)) != 1:
        return None
    return parse_heading(text.rstrip(":"))


def _prose(match: Match[str]) -> Optional[Event]:
    return _mention(match.string.strip())


def _mention(text: str) -> Optional[ThreadHead]:
    if len(text) > _LONGEST:
        return None
    numbers = _THREAD.findall(text)
    numbers = numbers[:1] if _THREAD.match(text) else numbers  # `Thread 5 (LWP 70)`: a head, the first is its number
    gil = True if _HOLDS_GIL.search(text) else None
    if len(numbers) == 1 or gil:
        return ThreadHead(id=numbers[0] if len(numbers) == 1 else None, gil=gil, firm=False)
    return None


def _saved(match: Match[str]) -> Event:
    return LogMessage(SAVED.format(path=match.group("path").rstrip(".")))


def _command(match: Match[str]) -> Event:
    """A command that prints stacks, and where it puts them."""
    saved = _SAVED.search(match.string)
    return process_head(match) if saved is None else Several((process_head(match), _saved(saved)))


_CALL = r"`?(?P<call>[A-Za-z_][\w.:]{1,200})(?:\(\))?`?(?: / `?[\w.:]{1,200}`?){0,4}"
_STUCK = (
    r"(?:(?:is |was )?(?:stuck|waiting|waits|blocked|hung|hanging|hangs|sleeping|parked|sits?|spinning)"
    r" (?:in|at|on|inside) )?"
)


def _thread_in_sentence(match: Match[str]) -> Optional[Event]:
    """A thread with its frames in a sentence: ``- `MainThread`: `dist.barrier` (`torch/x.py`) from `save` ``."""
    thread = match.group("thread")
    if not _A_THREAD.match(thread):
        return None
    file, caller = match.group("file"), match.group("caller")
    name = match.group("call").rpartition(".")[2] if file else match.group("call")
    line = match.group("line")
    python = bool(file and file.endswith(".py"))
    inner = Frame(name, file=file, line=int(line) if line else None, language="python" if python else "native")
    frames = [inner, Frame(caller.rpartition(".")[2], language=inner.language)] if caller else [inner]
    return Several((ThreadHead(id=thread, name=thread), *(FrameLine(frame) for frame in frames)))


ROWS: Tuple[Row, ...] = (
    *(row("", need, SAVED_BY_SCRIPT, _saved) for need in ("to ", "TO ")),
    row("", "+ tee ", TEE, _saved),
    row(
        "told",
        "`",
        r"\s{0,6}(?:[-*+] )?`(?P<thread>[\w.:-]{1,64})`\s?[:\u2013\u2014-]{1,2}\s"
        + _STUCK
        + _CALL
        + r"(?: \(`?(?P<file>[\w./+-]{1,300}\.\w{1,4})(?::(?P<line>\d{1,9}))?`?\))?"
        + r"(?: (?:called )?(?:from|by|via|in) `?(?P<caller>[A-Za-z_][\w.:]{1,200})`?)?",
        _thread_in_sentence,
    ),
    row(
        "",
        "hread ",
        r"(?i:traceback|backtrace|stack(?: trace)?) (?:for|of) [Tt]hread (?P<id>\d{1,9})\s{0,8}:?$",
        lambda match: ThreadHead(id=match.group("id")),
    ),
    row("", "", r"(?:={2,}|-{2,}|\*{1,}|~{2,}|\+{2,}|_{2,}) ?(?P<text>[^=~]{1,120}?)[ =*~+_:-]*$", _decorated),
    row(
        "",
        "",
        r"(?i:\s{0,4}" + _RANK_PHRASE + r"(?:rank|node|worker|host|pid|process|gpu)s?[ _#:=-]{0,3}\d+"
        r"(?:[ ,/:]{1,3}(?:local |global )?(?:rank|pid|process|gpu)[ _#:=-]{0,3}\d+){0,3}"
        r"(?: ?[,&-] ?\d+| and \d+){0,8}(?: \([^()]{0,80}\))?\s{0,8}[:.]?)$",
        _plain_heading,
    ),
    row(
        "",
        "",
        r"(?i:(?:\d{1,4}|one|all|the)(?: \w{1,12}){0,2} (?:process(?:es)?|ranks?|workers?)(?: \S{1,20}){0,5}:?)$",
        _plain_heading,
    ),
    row(
        "",
        "",
        r"(?i:(?:rank|tp|pp|dp|ep|node|worker)[ _-]?\d{1,5}(?:-\d{1,5})?\b"
        r"(?:[ ,(]{1,2}[^=:\"]{0,40}\b(?:sample|dump|stack|trace|bt|later|again|before|after|re-?sampled)\b"
        r"[^=:\"]{0,40})?\)?)"
        r"\s{0,4}:?$",
        _short_heading,
    ),
    row(
        "",
        "",
        r"(?:VLLM::|sglang::|ray::)?[A-Za-z]{4,24}(?:_TP|_PP|_DP|_EP|_CP|_PCP|_DCP| TP| PP| DP| EP)\d{1,5}"
        r"(?:[ _](?:DP|PP|TP|EP|PCP|DCP|CP)\d{1,5}){0,5}:?$",
        lambda match: ProcessHead(title=match.string.strip(" :")),
    ),
    row(
        "",
        "pid",
        r"\s{0,4}(?i:node|host)(?i:name)?[ =:]{1,3}(?P<host>[\w.-]{1,64}), {0,2}pid[ =:]{1,3}(?P<pid>\d{2,9})"
        r"\s{0,4}:?\s*$",
        lambda match: ProcessHead(title=match.string.strip(" :"), pid=int(match["pid"]), host=match["host"]),
    ),
    row("", ":", r".", _introduced_stack),
    row(
        "",
        " ",
        r"(?:(?:\[\S{1,60} \S{1,60}\]|\S{0,60})[$#%] |\+ )?(?:sudo )?"
        r"(?:py-spy dump|gstack|pstack|eu-stack|pystack remote|cuda-gdb|gdb)\b"
        r"[^|;]{0,80}? (?:--pid[ =]|-p ?)?(?P<pid>\d{2,9})\b",
        _command,
    ),
    row("", "...", r"\.\.\. ", lambda match: FramesMissing(match.string.strip()[:80])),
    *(row("", word, r".", _prose) for word in ("hread", "tid", "TID", "LWP", "task:")),
)
