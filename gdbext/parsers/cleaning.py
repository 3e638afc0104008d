"""Undo what happens to stacks on their way into a bug report: prefixes, quotes, pager prompts, markup, wrapping."""

from __future__ import annotations

import html
import itertools
import re
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Pattern, Tuple

from gdbext.knowledge.log_lines.last_words import REPEATED_BY_RAY
from gdbext.model.text.patterns import regex, union_pattern
from gdbext.parsers.boxed_tracebacks import whole_places
from gdbext.parsers.rank_sets import ranks_of_line


class Stream(NamedTuple):
    """Whose lines these are, where every line carries the name of its writer. All empty where none does. `error`: a
    logger has printed this line as an error. `repeated`: what Ray puts behind a line that several processes printed."""

    source: str = ""
    rank: Optional[int] = None
    pid: Optional[int] = None
    error: bool = False
    repeated: str = ""

    @property
    def writer(self) -> Stream:
        """Who wrote the line, without what is said of the line alone."""
        return self._replace(error=False, repeated="")


UNNAMED = Stream()

_PREFIXES = tuple(
    regex(pattern)
    for pattern in (
        r"\[(?:rank|default|Rank )(?P<rank>\d{1,6})\]:[ ]?",  # torchrun, torch's own prefix
        r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
        r"\[\d+,(?P<rank>\d{1,6})\]<std(?:out|err|diag)>:[ ]?",  # mpirun --tag-output, --timestamp-output
        r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}<std(?:out|err|diag)>:",  # mpirun --timestamp-output
        r"\((?:(?P<source>[\w.:-]{1,60}(?: (?:[TPDE]P|PCP)\d{1,5}){0,4})(?: rank=(?P<rank>\d{1,6}))? )?"
        r"pid=(?:(?P<pid>\d{1,9})|[.xXN*?]{1,9}|<\w{1,12}>)(?:, ip=[\w.:]{1,60})?\)[ ]?",  # Ray, vLLM
        r"\[pod/(?P<source>[^\]\s]{1,120})\][ ]?",  # kubectl logs --prefix
        r"(?P<source>[\w.-]{1,60})[ ]{1,40}\|(?:[ ]|$)",  # docker compose
        r"(?:[A-Za-z][a-z]{2}\.? [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
        r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*[+-]\d\d:?\d\d)"
        r" (?:\S{0,80} )?(?P<source>[\w.@-]{1,60})\[(?P<pid>\d{1,9})\]: ",  # journal, with a host's name or without
        r"[A-Za-z][a-z]{2}\.? [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})? [\w.-]{1,80} kernel: ?",  # journal, of the kernel
        r"\[[\w./-]{1,80}\.(?:py|cc|cpp|cu|go|rs):\d{1,6}(?::\w{1,60})?\] ",  # a logger's place: no host and its pid
        r"[\w.-]{1,100}\.(?:out|err|log):(?=\[[\w.-]{1,80}:\d{1,9}\] |mpirun noticed )",  # grep in the logs of a job
        r"\[(?P<source>[\w.-]{1,80}):(?P<pid>\d{1,9})\] ",  # Open MPI
        r"\[(?P<source>[\w.-]{1,80}):mpi_rank_(?P<rank>\d{1,6})\]\[\w{1,40}\][ ]?",  # MVAPICH
        r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})? \[[^\]\s]{1,80}\][ ]?",  # vLLM
        r"\[?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: - [\w.-]{1,60})?(?: -)?"
        r" \[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\]?(?: -|:)?(?:[ ]|$)",  # Python's logging
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?",  # container run times
        r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?(?:\t|[ ](?=[ ]{2,}|#\d|==\d"
        r"|Thread \d{1,6} \(|0x[0-9a-f]{8,16} in |\[[\w.-]{1,80}:\d{1,9}[\]:]|[A-Z][a-z]+ (?:to|of) "
        r"|goroutine \d|created by |[a-z][\w./-]{0,160}\.(?:\(\*\w{1,80}\)\.)?[\w.]{1,120}\())",  # a dump of Go
        r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})? (?=.)",  # a CI's clock
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?=\[\d|[ #]|SIG|Thread |Traceback|\S{1,200}\()",  # a CI's clock
        r"(?:\d{1,6}: ?)?[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} {1,4}\d{1,9} [\w./-]{1,200}:\d{1,6}\] "
        r"(?=\*\*\* |PC: @| {1,8}@ )",  # a stack that glog has logged
        r"\(\)(?= {1,8}@ {1,20}0x)",  # a worker of Ray, whose name a paste has lost
        r"\[ {0,5}\d{1,6}s\] (?=.)",  # a build of packages: seconds since its start
        r"\[\d{1,5}\] (?=\[\d{4}-\d\d-\d\d |Missing ranks:|\d{1,5}: \[)",  # horovodrun
        r"\[(?P<rank>\d{1,5})\] (?=#\d|Thread \d|Current thread |Traceback)",  # mpirun -l, GASNet
        r"(?P<rank>\d{1,5}): (?=#\d|Thread |Current thread |  |Traceback)",  # srun --label
        r"\((?:cuda-)?gdb\) (?=#\d|Thread \d|\[Switching)",  # a prompt that got output behind it
        r" ?(?:> ?){1,9}(?: {12,60})?(?!>)",  # mail and markdown quotes
        r"[\w.-]{1,40}/[\w.-]{1,60}(?=#\d{1,3} +(?:0x[0-9a-f]{6,16} in |[\w:~<>]{1,200} \([^()]{0,600}\)"
        r" (?:at|from) ))",  # an issue that was moved: `#1` became the number of one
        r"\\(?=#\d)",  # escaped for markdown
        r"#{2,6} ",  # markdown headings; a frame is `#4`
        r"[ ]{0,6}\d{1,6}\t(?=#\d|Thread |[ ]{4}|Traceback)",  # cat -n
        r"[^\n]{0,200}?(?:\d%\|[^|]{0,120}\||\d% Completed \|)[^\n]{0,80}?(?=Fatal Python error: |Traceback \(most"
        r"|Timeout \(\d)",  # tqdm, dask
    )
)
_ANY_PREFIX = union_pattern(prefix.pattern for prefix in _PREFIXES)
_MOST_PREFIXES = 4
_STRAY = regex("\x1b\\[[0-9;?]{0,20}[A-Za-z]|[\u200b\ufeff\x00]")
_MI_STREAM = regex(r"(?:\d{1,9}: \(\d{1,9}\) )?(?:-?> ?)?[~@]\"(?P<text>(?:[^\"\\]|\\.){0,8000})\"$")
_MI_ESCAPES = {"\\n": "", "\\t": "\t", '\\"': '"', "\\\\": "\\"}
_ESCAPE = regex(r"\\.")
_BULLET = regex(
    r"\s{0,8}(?:[-*+]|\d{1,3}[.)]) +(?=`{0,2}(?:#\d|0x[0-9a-f]|File \"|frame #|[A-Za-z_~<][\w:.<>~]{0,200}(?:\(\)"
    r"| \()))"
)
_FIRST = "(most recent call first):"
"""The end of faulthandler's heading of a thread, behind which a paste may have lost the end of the line."""
_FENCE = regex(r"~{3,20} ?\w{0,20}\s*\Z")
_SPAN = regex(r"`([^`]{1,2000})`")
_PAGER = regex(r"-{2,3}Type <(?:RET|return)> [^-\n]{0,80}-{2,3}")
_TAGS = regex(r"</?(?:details|summary|pre|code|p|br|b|blockquote|div|span|tt|font|li)(?: [^>]{0,200})?/?>")
_CELL = regex(
    r"\|(?: {3,200}\|){1,6} (?P<text>\S.*) \|\Z"
    r"|\| \S{1,100} {1,80}\| \d{1,6} {1,20}\| [A-Z]{4,20}: (?P<state>.*) \|\Z"
)
"""A line of a cell whose neighbours are empty, and the cell that says in which state a model is: Triton's server."""
_ENDS_IN_ADDRESS = regex(r"0x[0-9a-f]{6,16}\]?\Z")
_LOGGED_ERROR = regex(r"[^\"]{0,160}?\b(?:ERROR|CRITICAL|FATAL)\b[^\"]{0,120}\bFile \"")
_ENTITY = regex(r"&(?:lt|gt|amp|quot|nbsp|#39);")


_LOST_PLUS = tuple(
    (regex(pattern), put)
    for pattern, put in (
        (r"stdc(?:  )?(?=\.so)", "stdc++"),
        (r"(?<=[\w()>\]]) ?(?=0x[0-9a-f]{1,16}\) ?\[0x)", "+"),  # backtrace_symbols(): `lib.so(f 0x4a)[0x7f..]`
        (r" {3}(?=0x[0-9a-f]{1,16} \(0x|\d{1,6}$)", " + "),  # c10: `f()   0x4a (0x7f.. in lib.so)`; TensorRT-LLM
    )
)


def with_plus(text: str) -> str:
    """A line of a stack with the `+` that web pages and forms have turned into a blank, or dropped."""
    if "[0x" in text or "(0x" in text or "  " in text[4:]:
        for pattern, put in _LOST_PLUS:
            text = pattern.sub(put, text)
    return text


def clean_lines(lines: Iterable[str]) -> Iterator[Tuple[Stream, str]]:
    """Each line as its tool printed it, with the stream it belongs to. Pager prompts are left out."""
    learned, indented = LearnedPrefixes(), Indented()
    for line in itertools.chain.from_iterable(map(_apart, _cells(whole_places(lines)))):
        text = _STRAY.sub("", line).replace("\xa0", " ").rstrip()
        if "--Type <" in text:
            text = _PAGER.sub("", text)
            if len(text.strip()) <= 1:  # nothing but the answer to the prompt
                continue
        if text.endswith("\\n"):  # the line was written as a string: by JSON, by `repr`
            text = text[:-2]
        if '~"' in text[:24]:
            text = _console(text)
        text = text.replace("frame \\#", "frame #")
        if "<" in text:
            text = _TAGS.sub("", text)
        repeated = ""
        if " across cluster]" in text:
            text, repeated = _without_repeats(text)
        if "&" in text and _ENTITY.search(text):
            text = html.unescape(text).replace("\xa0", " ")
        error = 'File "' in text and _LOGGED_ERROR.match(text) is not None
        group, members, text = ranks_of_line(text)
        stream, text = (Stream(group), text) if members else split_prefix(text)
        said, _, rest = text.partition("Traceback (most recent")
        if rest and ("xception" in said or "rror" in said):
            yield stream, said.rstrip()  # who says so died of what comes
        head, first, frame = text.partition(_FIRST)
        if frame.lstrip().startswith('File "') and "hread" in head:
            yield stream, head + first
            text = f"  {frame.lstrip()}"
        headed = _THREAD_WITH_FRAME.match(text) if "hread" in text else None
        if headed:
            yield stream, headed.group()
            text = text[headed.end() :]
        stream, text = learned.split(stream, text)
        text = indented.without(text)
        if "`" in text or text.lstrip(" ")[:1] in _BULLETS:
            text = _without_markup(text)
        if "0x" in text:
            text = with_plus(text)
        stream = stream._replace(error=error, repeated=repeated) if error or repeated else stream
        text = "" if text.startswith("```") or (text.startswith("~~~") and _FENCE.match(text)) else text
        yield from ((stream._replace(rank=rank), text) for rank in members or (stream.rank,))


_GLUED = regex(
    r"(?P<before>(?:\s{0,12}#\d{1,4} .{0,400}\S|\S.{0,400}\.\w{1,4}:\d{1,9})) {3,200}"
    r"(?=#\d{1,4} {1,4}(?:0x[0-9a-f]{6,16} in |<signal handler called>))"
)
"""A frame behind the end of another one, padded to the width of a terminal."""


def _apart(text: str) -> Iterator[str]:
    """Frames of a stack, each on a line of its own."""
    found = _GLUED.match(text) if "   #" in text else None
    while found is not None:
        yield found["before"]
        text = text[found.end() :]
        found = _GLUED.match(text)
    yield text


def _cells(lines: Iterable[str]) -> Iterator[str]:
    """Lines with those of a table's last cell alone where the others only continue, or say whose it is. One that fills
    its cell goes on in the next, but for a frame."""
    held = ""
    for line in lines:
        found = _CELL.match(line.rstrip()) if line.startswith("| ") else None
        cell = "" if found is None else found.group("text") or found.group("state")
        text = line if found is None else held + cell.rstrip()
        if held and found is None:
            yield held
        filled = bool(cell) and not cell.endswith(" ")
        held = text if filled and len(text) < _LONGEST and not _ENDS_IN_ADDRESS.search(text) else ""
        if not held:
            yield text
    if held:
        yield held


def _console(text: str) -> str:
    """What gdb prints for people, as its machine interface wraps it: `~"#0  poll () from libc.so.6\\n"`."""
    found = _MI_STREAM.match(text)
    return _ESCAPE.sub(lambda one: _MI_ESCAPES.get(one.group(), ""), found.group("text")) if found else text


_SUFFIX_OF_RAY = regex(rf"(?P<suffix>{REPEATED_BY_RAY})(?: \(Ray deduplicates logs.{{0,400}})?$")
_BULLETS = frozenset("-*+0123456789")


def _without_repeats(text: str) -> Tuple[str, str]:
    """The line as it was printed, and what Ray has put behind it."""
    found = _SUFFIX_OF_RAY.search(text)
    return (text[: found.start()], found["suffix"]) if found else (text, "")


def _without_markup(text: str) -> str:
    """A frame in a list or in backticks."""
    bullet = _BULLET.match(text)
    if bullet:
        return _SPAN.sub(r"\1", text[bullet.end() :])  # lldb has single backticks of its own
    stripped = text.strip()
    if stripped.startswith("`") and stripped.endswith("`") and not stripped.startswith("```") and len(stripped) > 2:
        return stripped.strip("`")
    return text


def split_prefix(text: str) -> Tuple[Stream, str]:
    """Take off what log collectors and people put before a line."""
    if not _ANY_PREFIX.match(text):
        return UNNAMED, text  # almost every line
    source, rank, pid = UNNAMED.source, UNNAMED.rank, UNNAMED.pid
    for _ in range(_MOST_PREFIXES):
        if not _ANY_PREFIX.match(text):
            break
        found = next(match for match in (prefix.match(text) for prefix in _PREFIXES) if match)
        if not found.end():
            break
        said = found.groupdict()
        source = said.get("source") or source
        rank = int(said["rank"]) if said.get("rank") else rank
        pid = int(said["pid"]) if said.get("pid") else pid
        text = text[found.end() :]
    return Stream(source, rank, pid), text


_PART_OF_STACK = regex(
    r"[^\s\"'(][^\"]{0,160}?[\]>:|)\s](?=\s{0,40}(?:File \"[^\"]{1,400}\", line \d|#\d{1,3}\s+0x[0-9a-f]{6,16} ))"
)
_THREAD_WITH_FRAME = regex(r"# Thread(?:ID)?: \d{3,20}(?= {1,8}File \")")
"""Of a recipe by sys._current_frames() that joins its lines: the thread, in front of its outermost frame."""
_COMMENT = regex(
    r"[ \t]{0,40}(?:#|//|\*|;|--)(?= (?:Thread |Process \d|goroutine \d|#\d{1,3} |Traceback|\(gdb\) |\[<|\* thread #))"
)
_BEGINS_STACK = regex(r"(?!\^C|.*C\+\+ Trace)[^\s\"'][^\"]{0,300}?(?=Traceback \(most recent call (?:last|first)\))")
_LABEL = regex(r"\[(\d{1,5})\] (?=\S|\s{2})")
_NOTEBOOK = regex(r"[A-Z]\w{0,60} {2,80}Traceback \(most recent call last\)\Z")
"""IPython's head of a traceback: the exception comes first."""
_NOT_A_PREFIX = regex(
    r"(?:(?:\((?:Python|C|P|Cython)\)|=>|\*|>|\|)\s*|\[(?:Switching to|Current) [Tt]hread [^\]]{1,160}\])\s*\Z"
)
_SAID_RANK = regex(r"\[(?:rank|default|Rank )(\d{1,6})\]")
_SAID_SOURCE = regex(r"(?i)\b(?:worker|node|host|rank|tp|dp|pp)[-_ ]?\d{1,6}\b")
_MOST_LEARNED = 8


class LearnedPrefixes:
    """Prefixes of log collectors that no row has: learned from lines on which a part of a stack stands behind one, and
    taken off from every line that begins alike but for numbers."""

    def __init__(self) -> None:
        self._shapes: Dict[str, Pattern[str]] = {}
        self._label = ""  # of the line before
        self._labels = False

    def _labelled(self, stream: Stream, text: str) -> Tuple[Stream, str]:
        """`[3] text` of `mpirun -l`: the number of a frame would not come twice."""
        found = _LABEL.match(text)
        label, self._label = self._label, found.group(1) if found else ""
        if found is None:
            return stream, text
        self._labels = self._labels or (label == found.group(1) and "0x" not in text)
        return (
            (stream._replace(rank=int(label)), text[found.end() :])
            if self._labels and label == found.group(1)
            else (stream, text)
        )

    def split(self, stream: Stream, text: str) -> Tuple[Stream, str]:
        """The line without such a prefix, with what that says of its writer."""
        if "Traceback (most" in text and not text.lstrip().startswith("Traceback"):
            found = None if _NOTEBOOK.match(text) else _BEGINS_STACK.match(text)
            return (_with(stream, found.group()), text[found.end() :]) if found else (stream, text)
        if text.startswith("["):
            stream, text = self._labelled(stream, text)
        for shape in self._shapes.values():
            known = shape.match(text)
            if known:
                return _with(stream, known.group()), _behind(text, known.end())
        found = _COMMENT.match(text)
        if found is None and 'File "' not in text and " 0x" not in text:
            return stream, text
        found = found or _PART_OF_STACK.match(text)
        if found is None or (_NOT_A_PREFIX.match(found.group()) and not _COMMENT.match(text)):
            return stream, text
        prefix = found.group().rstrip()
        if len(self._shapes) < _MOST_LEARNED:
            alike = re.sub(r"\d+", r"\\d+", re.escape(prefix))
            self._shapes[alike] = re.compile(alike)
        return _with(stream, prefix), _behind(text, len(prefix))


_INDENTED = regex(r"[ \t]{1,16}(?=(?:traceback : )?Traceback \(most recent call last\))")
"""torch's elastic agent prints `  traceback : Traceback ...`, and what follows below that label."""


class Indented:
    """A traceback that stands further right, as in a box or a list, has its exception there too."""

    def __init__(self) -> None:
        self._margin = ""

    def without(self, text: str) -> str:
        """The line as far left as it was printed."""
        if "Traceback (most" in text:
            found = _INDENTED.match(text)
            self._margin = found.group() if found else ""
        elif self._margin and text.strip() and not text.startswith(self._margin):
            self._margin = ""
        return text[len(self._margin) :] if self._margin else text


def _behind(text: str, end: int) -> str:
    """What stands behind a prefix; the blank that sets it off is no indentation."""
    return text[end + 1 :] if text[end : end + 1] == " " else text[end:]


def _with(stream: Stream, prefix: str) -> Stream:
    rank, source = _SAID_RANK.search(prefix), _SAID_SOURCE.search(prefix)
    if rank is not None:
        return stream._replace(rank=int(rank.group(1)))
    return stream._replace(source=stream.source or source.group().lower()) if source is not None else stream


_NUMBERED = regex(r"\s{0,12}(?:=>|\* )?(?:frame )?#\d+\b")
_LISTED = regex(r"[* ]{0,9}\d[\d.]{0,9} +(?:Thread 0x|LWP \d)")  # by `info threads`
_NEW_LINE = regex(
    r"\s*(?:(?:\* )?(?:frame )?#\d|Thread |Current thread|Traceback|\((?:cuda-)?gdb\)|\(lldb\)|====="
    r"|\[(?:Switching|Inferior|New)|TID \d|PID \d|Process \d|(?:No locals|Backtrace stopped)|\d+\t)"
)
_LOCATION = regex(r"\s+(?:at|from)\b(?! =)")
_UNFINISHED = regex(r"(?:#\d+\s*(?:0x[0-9a-fA-F]+)?(?: in)?|\b(?:at|from|in))\s*\Z")
_QUOTED_OR_PAREN = regex(r'"(?:[^"\\]|\\.){0,400}"|\'(?:[^\'\\]|\\.[^\']{0,4})\'|[()]')
_BROKEN_PATH = regex(r"(?:\b(?:from|at) |File \"|[( ])(?:target:)?[\w.+~-]*/[\w./+~-]*\Z")
_REST_OF_PATH = regex(r"[\w./+~-]{1,300}(?:\.so[\w.]{0,40}|:\d{1,9}|\", line \d{1,9}(?:, in .{1,400})?)\)?\Z")
_ENDS_IN_PATH = regex(r"[ \t]{0,12}(?:File \"[^\"]{1,400}|\S[^()]{0,300} \([\w.+~-]*/[\w./+~-]{0,300})\Z")
_PANIC = regex(r".{0,120}thread '[^']{0,80}' (?:\(\d{1,9}\) )?panicked at \S{1,300}:\d{1,9}:\d{1,9}:\Z")
"""Rust prints what a panic says on the line behind its place."""
_CHAIN = regex(r"\s*(?![-→⟶])\S.{0,200}?(?: -> |\s?[→⟶]).{1,200}?(?: -> |\s?[→⟶])")
_GOES_ON = regex(r"\s*(?:->|→|⟶)\s*\S")
"""A chain of calls with arrows, and a line that begins with the next arrow."""
_CALL_FAILED = regex(r" {2}[\w:()][\w:() .-]{2,80} failed\Z")
"""Open MPI's help boxes print on the line behind it what that call has returned."""
_TERMINAL = 76  # a line this long may have been broken by the terminal's width
_MOST_PARTS = 60
_LONGEST = 32 << 10


def open_parentheses(text: str) -> bool:
    """Whether an argument list is not closed yet. Parentheses in strings do not count."""
    depth = 0
    for found in _QUOTED_OR_PAREN.finditer(text):
        depth += {"(": 1, ")": -1}.get(found.group(), 0)
    return depth > 0


class Unwrapper:
    """Joins numbered frames, and torch's lines of collectives, that stand on several lines. Feed lines, take whole
    ones; at the end `flush`."""

    def __init__(self) -> None:
        self._parts: List[str] = []
        self._length = 0

    def feed(self, line: str) -> List[str]:
        if self.continues(line):
            self._parts.append(self._separator(line))
            self._length += len(line)
            return []
        done = self.flush()
        listed = "LWP " in line and _LISTED.match(line) and open_parentheses(line)
        if (
            listed
            or _NUMBERED.match(line)
            or ("panicked at" in line and _PANIC.match(line))
            or _CALL_FAILED.match(line)
            or (("→" in line or " -> " in line) and _CHAIN.match(line))
            or ("WorkNCCL(" in line and len(line) >= _TERMINAL and open_parentheses(line))
            or ("/" in line and _ENDS_IN_PATH.match(line))
        ):
            self._parts, self._length = [line], len(line)
            return done
        return [*done, line]

    def flush(self) -> List[str]:
        done = ["".join(self._parts)] if self._parts else []
        self._parts = []
        return done

    def continues(self, line: str) -> bool:
        """Whether it is the rest of the frame or message that is held."""
        if not self._parts or len(self._parts) >= _MOST_PARTS or self._length > _LONGEST:
            return False
        if not line.strip() or _NEW_LINE.match(line):
            return False
        held = "".join(self._parts)
        if _CALL_FAILED.match(held):
            return line.lstrip().startswith("--> Returned ")
        if _CHAIN.match(held):
            return _GOES_ON.match(line) is not None
        if _PANIC.match(held):
            return not line.startswith(("stack backtrace", "note: "))
        if _is_path_broken(held, line):
            return True
        if _UNFINISHED.search(held) or _LOCATION.match(line):
            return True
        indented = line[0] in " \t"
        return (indented or len(self._parts[-1]) >= _TERMINAL) and open_parentheses(held)

    def _separator(self, line: str) -> str:
        """A debugger breaks at spaces and indents; a terminal breaks anywhere and does not."""
        if _is_path_broken(self._parts[-1], line):
            return line.strip()
        return (
            " " + line.strip()
            if _PANIC.match(self._parts[0]) or line[0] in " \t" or _UNFINISHED.search(self._parts[-1])
            else line
        )


def _is_path_broken(held: str, line: str) -> bool:
    """Whether a path goes on on the next line, which is nothing but the rest of it."""
    return bool(_REST_OF_PATH.match(line.strip()) and _BROKEN_PATH.search(held))
