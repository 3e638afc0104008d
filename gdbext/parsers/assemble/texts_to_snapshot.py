"""Texts -> one snapshot of a job."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from types import MappingProxyType
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from gdbext.knowledge.engines.all_profiles import PROFILES
from gdbext.knowledge.launch.launchers import RANK_ARGUMENTS
from gdbext.knowledge.log_lines import LAUNCHER_SAW
from gdbext.knowledge.log_lines.last_words import OF_ITSELF
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.text.digits import integer_or_none
from gdbext.model.text.patterns import regex
from gdbext.parsers import text_lines
from gdbext.parsers.assemble import pyspy_json
from gdbext.parsers.assemble.assembler import Assembler
from gdbext.parsers.assemble.building import Process
from gdbext.parsers.assemble.file_owners import join_texts_of_rank, merge_mentioned_ranks, owner_of, shared_folders
from gdbext.parsers.assemble.joined_headings import is_about
from gdbext.parsers.assemble.log_writers import LogWriters
from gdbext.parsers.assemble.text_limits import Tally
from gdbext.parsers.assemble.threads import Thread
from gdbext.parsers.cleaning import UNNAMED, Stream, clean_lines
from gdbext.parsers.compute_sanitizer.report_owners import FileReport, given_to, ranks_of_names, take_reports
from gdbext.parsers.compute_sanitizer.report_stream import ReportStream
from gdbext.parsers.compute_sanitizer.xid_owners import with_xids
from gdbext.parsers.line_events import LONGEST_PROBLEM, LogMessage, ProcessHead

_LAUNCHER_SAW, _OF_ITSELF = regex(LAUNCHER_SAW), regex(OF_ITSELF)
_FILE_RANK = regex(r"(?i)rank[-_.]?(\d{1,6})(?!\d)")
_FILE_PID = regex(r"(?i)(?:^|[^a-z])(?:pid|core)[-_.]?(\d{2,9})(?!\d)")
_TITLES = tuple((regex(rule.pattern), profile.name) for profile in PROFILES for rule in profile.titles)
_ARGUMENTS = tuple(regex(rule.pattern, re.IGNORECASE) for rule in RANK_ARGUMENTS)
_CONTINUATION = regex(
    r"frame #|Exception raised from |CUDA kernel errors might be |For debugging consider |Compile with `TORCH_|$"
)
"""Lines of torch's messages behind the first."""
_RECEIVED, _END_OF_UCX = "*** Process received signal", regex(r"={20,}$")
"""How the handler of Open MPI begins, and the one of UCX ends."""
_LABEL = regex(r"(?m)^(\d{1,5}): ")
_OF_A_TEST = regex(r"(?m)^\d{1,5}: (?:Test (?:command|timeout)|.{0,200}?[a-z]Sanitizer: )")
_MOST_PROBLEMS = 40
_MOST_MESSAGES = 1000  # log lines of processes whose stacks stand elsewhere, or nowhere
_MOST_STREAMS = 8192  # writers that are told apart


def parse_files(
    texts: Sequence[Tuple[str, bytes]], streamed: Mapping[str, ReportStream] = MappingProxyType({})
) -> JobSnapshot:
    """Whatever stacks stand in these texts, as (name, content).

    The kind of text is recognised line by line: gdb, cuda-gdb, gstack, lldb, eu-stack, py-spy (also its JSON), pystack,
    faulthandler, Python tracebacks, stacks of crash handlers, and logs around them. Nothing raises: what could not
    be read is said in `problems`, one line each, and a text without stacks gives no processes. Time and memory grow
    with the length of the texts, of which at most `source.LIMIT` bytes each are read. `streamed`: of longer texts the
    sanitizer's reports, which were read as they came.
    """
    tally = Tally()
    processes: List[RankSnapshot] = []
    problems: List[str] = []
    said: List[str] = []
    names = [name for name, _ in texts]
    shared = shared_folders(names)
    owners = {name: owner_of(name[shared:]) for name in names} if len(texts) > 1 else {}
    of_reports = ranks_of_names(names)
    reports: List[FileReport] = []
    for name, data in join_texts_of_rank(texts, owners):
        owner = owners.get(name, UNNAMED)
        found = _parse(name, data, tally, of_reports.get(name, owner) if owner.rank is None else owner, streamed)
        reports += found.reports
        processes += _titled(name, found.processes) if len(texts) > 1 else found.processes
        problems += found.problems
        said += found.said
    processes = given_to(merge_mentioned_ranks(processes), reports) if reports else merge_mentioned_ranks(processes)
    processes, said = with_xids(processes, said, texts)
    problems += _not_understood(tally)
    numbered = _called([replace(process, index=index) for index, process in enumerate(processes)])
    return JobSnapshot(
        processes=numbered,
        engine=_common([one.engine for one in numbered]),
        problems=_capped(problems),
        said=_capped(said),
        first_said=tuple(tally.first) if len(texts) == 1 else (),
        error_lines=tuple(sorted(tally.errors, key=lambda line: tally.errors[line])),
    )


class _Found(NamedTuple):
    """What one text has: processes, what could not be read, and log lines of nobody in particular."""

    processes: Sequence[RankSnapshot] = ()
    problems: Sequence[str] = ()
    said: Sequence[str] = ()
    reports: Sequence[FileReport] = ()


def _parse(name: str, data: bytes, tally: Tally, writer: Stream, streamed: Mapping[str, ReportStream]) -> _Found:
    whole = text_lines.head_and_tail(name, data)
    text, unreadable = text_lines.as_text(whole)
    problems = [*whole.problems, *unreadable]
    if not text:
        return _Found((), problems)
    reports, text = take_reports(name, text, writer, streamed.get(name))
    if reports and not text.strip():
        return _Found((), problems, (), reports)
    pyspy_dump = pyspy_json.extract(text)
    problems += [f"{name}: {problem}" for problem in pyspy_dump.problems]
    for process in pyspy_dump.processes:
        tally.add(process)
    streams = _assemble(pyspy_dump.rest, tally, writer)
    written = [process for one in streams for process in one.processes]
    _drop_copies(streams)
    _join_handlers(written)
    _keep_with_process(written)
    for process in written:
        process.drop_what_says_nothing()
    if any(one.messages for one in streams) or not all(process.is_launcher for process in written):
        for process in written:
            process.drop_launcher()
    processes = [process for process in (*pyspy_dump.processes, *written) if process.shows_stacks]
    loose = [(one.stream, message) for one in streams for message in (*one.messages, *_left_over(one))]
    _number_by_launcher(processes, [message.text for _, message in loose])
    _number_by_lines(processes, loose)
    speakers = LogWriters()
    spoken_of = {_rank_of(stream, message) for stream, message in loose} - {None}
    nameless = len(processes) == 1 and processes[0].head.rank is None and len(spoken_of) == 1
    named_only: List[Tuple[Stream, LogMessage]] = []
    for stream, message in loose[:_MOST_MESSAGES]:
        pid = stream.pid if message.pid is None else message.pid
        same = nameless and None in (pid, processes[0].head.pid)  # one rank speaks and one process is seen
        rank = None if same or (nameless and pid == processes[0].head.pid) else _rank_of(stream, message)
        owner = _owner(replace(message, rank=rank, pid=pid), processes)
        died = not processes or (_OF_ITSELF.search(message.text) and all(one.head.pid for one in processes))
        if owner is None and (rank is not None or (pid is not None and died)):
            owner = speakers.find(rank, pid, stream.source)
        if owner is not None:
            owner.tell(message.text)
        elif message.text:
            named_only.append((stream, message))
    said = [_prefixed(stream, message.text) for stream, message in speakers.by_name(named_only, bool(processes))]
    if not processes:
        said = speakers.assign_lines(said)
    speaking = speakers.finished(said, processes)
    found = [_identified(process.finished(0)) for process in (*processes, *speaking)]
    if writer.rank is not None and not (found or reports):  # its log tells nothing: that may tell all
        silent = f"no line of {name} reports a fault; the last line is: {_last_line(text)}"
        found = [replace(speakers.find(writer.rank, None).finished(0), problems=(silent,))]
    problems += [_PRINTED_AGAIN.format(label) for label in _printed_again(processes, found)]
    return _Found(_named_after_file(name, _in_order(found, streams)), problems, said, reports)


def _in_order(found: List[RankSnapshot], streams: Sequence[Assembler]) -> List[RankSnapshot]:
    """As the text names them, where a prefix of its lines names all."""
    places = {one.stream.pid: number for number, one in reversed(list(enumerate(streams)))}
    known = all(one.pid is not None and one.pid in places for one in found)
    return sorted(found, key=lambda one: places[one.pid or 0]) if known else found


_PRINTED_AGAIN = (
    "{} is printed more than once; its last stacks are used. The time between the prints is unknown, so they are "
    "not compared as two samples"
)


def _printed_again(written: Sequence[Process], found: Sequence[RankSnapshot]) -> List[str]:
    """Who is printed more than once, by what people call it."""
    return [process.label for one, process in zip(written, found) if any(thread.superseded for thread in one.threads)]


def _assemble(text: str, tally: Tally, owner: Stream) -> List[Assembler]:
    streams: Dict[Stream, Assembler] = {}
    last = UNNAMED
    test = _number_of_test(text)
    ended: Optional[Assembler] = None  # whose stack of UCX the line before has ended
    carried = False  # whether the lines of a stack follow that begins behind a prefix
    for written, line in clean_lines(text_lines.lines(text)):
        stream = written.writer
        if test is not None and stream.rank in (None, test):
            stream, line = stream._replace(rank=None), _LABEL.sub("", line, 1)
        if stream != UNNAMED:
            carried = "Traceback (most recent" in line
        elif (
            _CONTINUATION.match(line)
            or carried
            or (last != UNNAMED and last in streams and streams[last].line_is_cut(line))
        ):
            stream = last  # torch's and SGLang's loggers name the rank before the first line of a message only
            carried = carried and (line[:1] in (" ", "\t") or line.startswith("Traceback"))
        last = stream
        if stream == UNNAMED:
            stream = owner
        one = streams.get(stream)
        if one is None and len(streams) >= _MOST_STREAMS:
            one, stream = streams.get(UNNAMED), UNNAMED
        if one is None:
            one = streams[stream] = Assembler(stream, tally)
        if ended is not None and stream.pid is not None and line.startswith(_RECEIVED):
            ended.then_died(stream.pid)
        one.feed(line, written.error, written.repeated)
        ended = one if _END_OF_UCX.match(line) else None
    for one in streams.values():
        one.finish()
    return list(streams.values())


def _number_of_test(text: str) -> Optional[int]:
    """`41: ` before the lines of a test, as CTest prints it; `srun --label` puts a rank there, and mostly several."""
    if not _OF_A_TEST.search(text):
        return None
    numbers = set(_LABEL.findall(text))
    return int(numbers.pop()) if len(numbers) == 1 and "0" not in numbers else None


def _drop_copies(streams: Sequence[Assembler]) -> None:
    """torch prints a traceback twice, once as it is and once with the rank before every line: the bare one goes."""
    named = {
        _calls(thread)
        for one in streams
        if one.stream != UNNAMED
        for process in one.processes
        for thread in process.threads
        if thread.kind == "traceback"
    }
    for process in (process for one in streams if one.stream == UNNAMED for process in one.processes):
        process.threads = [
            thread for thread in process.threads if thread.kind != "traceback" or _calls(thread) not in named
        ]


def _left_over(stream: Assembler) -> List[LogMessage]:
    """Lines of processes whose stacks turned out to say nothing."""
    bare = [process for process in stream.processes if not process.shows_stacks]
    return [LogMessage(text, process.head.pid, process.head.rank) for process in bare for text in process.said]


def _keep_with_process(written: Sequence[Process]) -> None:
    """The stack inside of an uncaught exception's message names no process: it is of the one that then died."""
    dead = [process for process in written if process.head.pid is not None and process.threads]
    for process in written:
        if len(dead) == 1 and process.head == ProcessHead() and all(one.kind == "exception" for one in process.threads):
            dead[0].threads += process.threads
            for text in process.said:
                dead[0].tell(text)
            process.threads = []


def _join_handlers(written: Sequence[Process]) -> None:
    """UCX's handler of a signal prints the stack and raises the signal again, then the one of Open MPI does, which
    names the process. Of two stacks without a head the first counts: UCX's, unless the text has lost its inner end."""
    for process in written:
        other = next((one for one in written if process.died_as and one.head.pid == process.died_as), None)
        if other is None or process.head.pid is not None or len(process.threads) != 1:
            continue
        both = [*process.threads, *other.threads]
        other.threads = both[::-1] if process.threads[0].lacks_inner else both
        for text in process.said:
            other.tell(text)
        process.threads = []


def _number_by_launcher(processes: Sequence[Process], texts: Sequence[str]) -> None:
    """mpirun says which rank a pid was that died."""
    for found in filter(None, map(_LAUNCHER_SAW.search, texts)):
        for process in processes:
            if found.group("pid") == str(process.head.pid) and process.head.rank is None:
                process.head = replace(process.head, rank=int(found.group("rank")))


def _number_by_lines(processes: Sequence[Process], loose: Sequence[Tuple[Stream, LogMessage]]) -> None:
    """What one line says of pid and rank is of one process, where no line gives either to another."""
    pairs = {(stream.pid if one.pid is None else one.pid, _rank_of(stream, one)) for stream, one in loose}
    named = Counter(number for pair in pairs if None not in pair for number in (("pid", pair[0]), ("rank", pair[1])))
    taken = {process.head.rank for process in processes}
    for process in processes:
        found = [rank for pid, rank in pairs if rank is not None and pid is not None and pid == process.head.pid]
        alone = found and named["pid", process.head.pid] == named["rank", found[0]] == 1
        if alone and process.head.rank is None and found[0] not in taken:
            process.head = replace(process.head, rank=found[0])


def _calls(thread: Thread) -> Tuple[Tuple[object, ...], ...]:
    return tuple((frame.function, frame.file, frame.line) for frame in thread.frames)


def _owner(message: LogMessage, processes: Sequence[Process]) -> Optional[Process]:
    """Whose a message is; the only process takes what nothing speaks against, of several none takes what names none."""
    named = message.pid is not None or message.rank is not None
    for process in processes if named or len(processes) == 1 else ():
        if is_about(process, message):
            return process
    alone = processes[0].head if len(processes) == 1 else None
    if alone is not None and alone.pid is None and message.rank in (None, alone.rank):
        return processes[0]
    return None


def _rank_of(stream: Stream, message: LogMessage) -> Optional[int]:
    """Whose line it is: the prefix knows better than the text, which may have the number within a group."""
    return message.rank if stream.rank is None else stream.rank


def _prefixed(stream: Stream, text: str) -> str:
    who = f"rank {stream.rank}: " if stream.rank is not None else f"{stream.source}: " if stream.source else ""
    return (who + text)[:LONGEST_PROBLEM]


def _identified(process: RankSnapshot) -> RankSnapshot:
    """The rank and engine that the title of the process tells."""
    for pattern, engine in _TITLES:
        match = pattern.search(process.title or "")
        if match:
            return replace(process, engine=engine, rank=_rank(match.groupdict(), process.rank))
    return _numbered_by_arguments(process)


def _numbered_by_arguments(process: RankSnapshot) -> RankSnapshot:
    """`python train.py --rank 3`, as py-spy prints it."""
    said: Dict[str, Optional[str]] = {}
    for pattern in _ARGUMENTS if process.title else ():
        match = pattern.search(process.title or "")
        said = {**match.groupdict(), **said} if match else said
    local = said.get("local_rank")
    return replace(
        process,
        rank=_rank({name: value for name, value in said.items() if name != "local_rank"}, process.rank),
        local_rank=int(local) if local and process.local_rank is None else process.local_rank,
    )


def _rank(groups: Dict[str, Optional[str]], known: Optional[int]) -> Optional[int]:
    """A title's rank; where it has only the number in the tensor parallel group, that is the rank."""
    found = {name: integer_or_none(value) for name, value in groups.items()}
    numbers = {name: value for name, value in found.items() if value is not None}
    if known is not None or not numbers:
        return known
    return numbers.get("rank", numbers["tp"] if set(numbers) == {"tp"} else None)


def _named_after_file(name: str, processes: List[RankSnapshot]) -> List[RankSnapshot]:
    """A file with one process is called after it: `stack.rank3.txt`."""
    if len(processes) != 1:
        return processes
    one = processes[0]
    base = name.rsplit("/", 1)[-1]
    rank, pid = _FILE_RANK.search(base), _FILE_PID.search(base)
    return [
        replace(
            one,
            rank=int(rank.group(1)) if rank and one.rank is None else one.rank,
            pid=int(pid.group(1)) if pid and one.pid is None else one.pid,
        )
    ]


def _titled(name: str, processes: Sequence[RankSnapshot]) -> List[RankSnapshot]:
    """One of several files: its only process, where nothing else names it, has the file's name as its title."""
    if len(processes) != 1 or name.endswith(".py"):
        return list(processes)
    one = processes[0]
    if one.title or one.rank is not None or one.pid is not None:
        return [one]
    return [replace(one, title=name.rsplit("/", 1)[-1])]


def _called(processes: Sequence[RankSnapshot]) -> Tuple[RankSnapshot, ...]:
    """With names for those that nothing else tells apart: the only one, and those that share a pid, as each container
    has one of its own."""
    pids = Counter(one.pid for one in processes)
    found = []
    for one in processes:
        if one.rank is None and one.pid is None and len(processes) == 1:
            one = replace(one, only=True)
        elif one.rank is None and one.pid is not None and pids[one.pid] > 1:
            one = replace(one, shares_pid=True)
        found.append(one)
    return tuple(found)


def _not_understood(tally: Tally) -> List[str]:
    said: List[str] = []
    if tally.strange:
        lines = "1 line that may belong" if tally.strange == 1 else f"{tally.strange} lines that may belong"
        example = ": " if tally.strange == 1 else ", for example "
        examples = f'{example}"{tally.samples[0]}"' if tally.samples else ""
        said.append(f"{lines} to a stack could not be parsed{examples}"[:LONGEST_PROBLEM])
    if tally.beyond:
        said.append(f"too many stacks: {tally.beyond} frames or threads beyond the limits were not kept")
    return said


def _last_line(text: str) -> str:
    """What a log ends with, as far as it is worth a look."""
    lines = [line.strip() for line in text[-4000:].splitlines() if line.strip()]
    return lines[-1][:160] if lines else "nothing"


def _common(names: Sequence[Optional[str]]) -> Optional[str]:
    known = {name for name in names if name}
    return known.pop() if len(known) == 1 else None


def _capped(problems: Sequence[str]) -> Tuple[str, ...]:
    unique = list(dict.fromkeys(problems))
    more = len(unique) - _MOST_PROBLEMS
    return tuple(unique[:_MOST_PROBLEMS] + ([f"{more} more messages are not shown"] if more > 0 else []))
