"""Stacks of other languages' runtimes and of other tools: Go, Java, Julia, MPICH, pytest-timeout, compute-sanitizer."""

from __future__ import annotations

from typing import Match, Tuple

from gdbext.knowledge.log_lines.last_words import AS_IT_ENDS, TEST_TIMEOUT
from gdbext.model.text.digits import integer_or_none
from gdbext.model.text.patterns import regex
from gdbext.parsers.formats.format_row import (
    Row,
    announcement,
    detail,
    location,
    native_frame,
    number,
    outermost_first,
    row,
)
from gdbext.parsers.frame_lines import Place, named_frame
from gdbext.parsers.line_events import (
    Event,
    FrameLine,
    LogMessage,
    OtherStack,
    ProcessHead,
    Several,
    ThreadHead,
)


def _goroutine(match: Match[str]) -> Event:
    ends = AS_IT_ENDS if " gp=0x" in match.group() else ""
    return ThreadHead(id=match.group("id"), problem=f"goroutine in state {match.group('state')}{ends}")


def _go_frame(match: Match[str]) -> Event:
    """`github.com/x/llama._Cfunc_llama_decode(0x7f, {0x1})`: through cgo it is the C function."""
    name = match.group("name").rpartition("/")[2]
    return FrameLine(named_frame(name.rpartition("._Cfunc_")[2] or name))


def _go_profile(match: Match[str]) -> Event:
    """A line of /debug/pprof/goroutine?debug=1."""
    name = match.group("name").rpartition("/")[2]
    return FrameLine(named_frame(name, Place(None, match.group("file"), integer_or_none(match.group("line")))))


def _clr_thread(match: Match[str]) -> Event:
    lwp = number(match.group("lwp"))
    return ThreadHead(id=match.group("id") or str(lwp), lwp=lwp)


def _clr_frame(match: Match[str]) -> Event:
    pc = match.group("pc")
    name = match.group("name").partition(" + ")[0]
    return FrameLine(named_frame(name.partition("(")[0], Place(match.group("lib")), int(pc, 16) if pc else None))


def _java_thread(match: Match[str]) -> Event:
    lwp = number(match.group("nid"))
    return ThreadHead(id=str(lwp), lwp=lwp, name=match.group("name"))


def _java_named(match: Match[str]) -> Event:
    """`"main" Id=1 BLOCKED on java.lang.Object@1f owned by "b"`: a thread of Java that no number of the system "
    "names."""
    name, rest = match.group("name"), match.group("rest") or ""
    blocked = _BLOCKED_ON.search(rest)
    problem = _WANTED.format(blocked.group("lock"), f'"{blocked.group("owner")}"') if blocked else ""
    return ThreadHead(id=name, name=name, problem=problem, firm=bool(rest.strip(": ")))


def _wanted_of(match: Match[str]) -> Event:
    return LogMessage(_WANTED.format(match.group("lock"), f'"{match.group("owner")}"'), about="before")


def _lock_of(match: Match[str]) -> Event:
    """A lock as ThreadInfo prints it, in jstack's words; of `Locked synchronizers` only its name."""
    how = {"blocked on": "waiting to lock", None: "locked"}.get(match.group("how"), match.group("how"))
    return LogMessage(f"- {how} <{match.group('lock')}>", about="before")


def _blocks(match: Match[str]) -> Event:
    return LogMessage(f"- blocks {match.group('text')}", about="before")


def _state(match: Match[str]) -> Event:
    return LogMessage(match.group("text"), about="before")


def _java_frame(match: Match[str]) -> Event:
    file, _, line = match.group("where").partition(":")
    place = Place(None, file if "." in file else None, integer_or_none(line))
    return FrameLine(named_frame(match.group("name"), place))


def _julia_signal(match: Match[str]) -> Event:
    pid = match.group("pid")
    return Several((LogMessage(match.group("text"), int(pid) if pid else None, about="next"), ThreadHead(current=True)))


def _julia_frame(match: Match[str]) -> Event:
    file, line = match.group("file"), match.group("line")
    library = ".so" in file
    place = Place(file) if library else Place(None, file, int(line) if line else None)
    return FrameLine(named_frame(match.group("name"), place))


def _mpich_error(match: Match[str]) -> Event:
    return Several((LogMessage(match.string.strip(), about="next"), ThreadHead(current=True, outermost_first=True)))


def _stack_of(match: Match[str]) -> Event:
    return ThreadHead(id=match.group("id"), name=match.group("name"), outermost_first=True)


def _numbered_stack(match: Match[str]) -> Event:
    """`### ProcessID=82627, ThreadID=4617211392 ###`: a recipe by sys._current_frames()."""
    id, pid = match.group("id"), integer_or_none(match.group("pid"))
    head = ThreadHead(id=id, outermost_first=True)
    return head if pid is None else Several((ProcessHead(pid=pid), head))


_BLOCKED_ON = regex(r"BLOCKED on (?P<lock>[\w.$]{1,200}@[0-9a-f]{1,16}) owned by \"(?P<owner>[^\"]{1,200})\"")
_WANTED = "- waiting to lock <{}>, which is held by {}"

ROWS: Tuple[Row, ...] = (
    row("go", "goroutine ", r"goroutine (?P<id>\d{1,12})(?: [^\[\]]{0,120})? \[(?P<state>[^\]]{1,80})\]:$", _goroutine),
    row("go", "SIG", r"(?P<text>SIG[A-Z]{2,5}: [a-z].{3,80})$", announcement),
    row("", "created by ", r"created by \S", lambda _: OtherStack(), "go"),
    row("", "(", r"(?P<name>[A-Za-z_][\w./*()\[\]{}~·%-]{0,400}\.[\w.()*·-]{1,200})\(.{0,2000}\)$", _go_frame, "go"),
    row("", ":", r"\s{1,8}(?P<file>\S{1,400}):(?P<line>\d{1,9})(?: \+0x[0-9a-f]{1,16}.{0,200})?$", location, "go"),
    row("go", " @ 0x", r"\d{1,9} @(?: 0x[0-9a-f]{1,16}){1,400}$", lambda _: ThreadHead()),
    row(
        "go",
        "#\t",
        r"#\t0x[0-9a-f]{1,16}\t(?P<name>\S{1,400}?)\+0x[0-9a-f]{1,16}\s{1,40}(?P<file>\S{1,400}):(?P<line>\d{1,9})$",
        _go_profile,
    ),
    row("delve", " in ", r"\s{0,4}(?P<number>\d{1,4})  (?P<pc>0x[0-9a-f]{16}) in (?P<name>\S{1,400})$", native_frame),
    row("", "at ", r"\s{2,10}at (?P<file>\S{1,400}):(?P<line>\d{1,9})$", location, "delve"),
    row("clr", "OS Thread Id: ", r"OS Thread Id: (?P<lwp>0x[0-9a-f]{1,8})(?: \((?P<id>\d{1,6})\))?$", _clr_thread),
    row(
        "clr",
        "",
        r"[0-9A-F]{16} (?:(?P<pc>[0-9A-Fa-f]{16})| {16}) (?:\[\w{1,60}: [0-9a-f]{16}\] )?"
        r"(?:(?P<lib>[\w.-]{1,120})!)?(?P<name>[A-Za-z_].{1,1000})$",
        _clr_frame,
    ),
    row("java", "nid=", r"\"(?P<name>[^\"]{1,200})\" .{0,200}\bnid=(?P<nid>0x[0-9a-f]{1,8}|\d{1,9})\b", _java_thread),
    row(
        "java",
        '"',
        r"\"(?P<name>[^\"]{1,200})\"(?P<rest>:| (?:#\d{1,9} |daemon |prio=|Id=|tid=).{0,400}| - Thread t@\d{1,9})?$",
        _java_named,
    ),
    row(
        "java",
        "(state = ",
        r"Thread (?P<id>\d{1,9}): \(state = [A-Z_]{3,20}\)$",
        lambda match: ThreadHead(id=match.group("id"), lwp=int(match.group("id"))),
    ),
    row(
        "java",
        "@bci=",
        r" {1,4}- (?P<name>[\w.$<>/]{3,400})\(.{0,400}\) @bci=\d{1,9}(?:, pc=0x[0-9a-f]{1,16})?(?:,"
        r" line=(?P<line>\d{1,9}))? \(",
        native_frame,
    ),
    row(
        "java",
        "\tat ",
        r"\s{1,8}at (?P<name>[\w.$<>/@-]{3,400})(?:\([\w$/;\[]{0,200}\)[\w$/;\[]{1,200})?\((?P<where>[^()]{0,200})\)$",
        _java_frame,
    ),
    row(
        "java",
        " at ",
        r"\s{2,8}at (?P<name>[\w.$<>/@-]{3,400})"
        r"\((?P<where>Native Method|Unknown Source(?::-?\d{1,6})?|\w{1,120}\.(?:java|scala|kt|groovy):-?\d{1,6})\)$",
        _java_frame,
    ),
    row(
        "java",
        "(",
        r"(?P<name>[a-z][\w$]{0,60}(?:\.[\w$<>/]{1,120}){2,12})"
        r"\((?P<where>Native Method|Unknown Source|\w{1,120}\.(?:java|scala|kt):\d{1,6})\)$",
        _java_frame,
    ),
    row(
        "",
        "- ",
        r"\s{1,8}(?P<text>- (?:(?:waiting (?:to lock|to re-lock in wait\(\)|on)|parking to wait for|locked) {1,2}"
        r"<0x[0-9a-f]{1,16}>|<0x[0-9a-f]{8,16}> \(a |waiting on the Class initialization monitor for [\w.$]).{0,200})$",
        lambda match: LogMessage(match.group("text"), about="before"),
    ),
    row(
        "",
        "@",
        r"\s{1,8}- {1,2}(?P<how>blocked on|waiting on|locked)? ?(?P<lock>[\w.$]{3,200}@[0-9a-f]{1,16})$",
        _lock_of,
    ),
    row(
        "",
        "to release lock on",
        r"\s{1,8}waiting for (?P<owner>.{1,200}) to release lock on <(?P<lock>[^<>]{1,60})>",
        _wanted_of,
    ),
    row("", "blocks ", r"\s{1,8}blocks (?P<text>\S.{0,200}@\d{1,9})$", _blocks),
    row("", "State: BLOCKED", r"\s{2,8}(?P<text>java\.lang\.Thread\.State: BLOCKED.{0,80})$", _state, "java"),
    row("", "java.lang.Thread.State: ", r"\s{0,8}java\.lang\.Thread\.State: [A-Z]", detail),
    row("", "", r"\s{2,8}- \w", detail, "java"),
    row(
        "julia",
        "signal ",
        r"(?:\[(?P<pid>\d{1,9})\] )?"
        r"(?P<text>signal (?:\(\d{1,2}(?:\.\d{1,3})?\)|\d{1,2} \(-?\d{1,3}\)): [A-Z][\w ]{3,40})$",
        _julia_signal,
    ),
    row("", "in expression starting at", r"in expression starting at ", detail, "julia"),
    row(
        "",
        " at ",
        r"(?P<name>\S.{0,600}?) at (?P<file>\S{1,400}?)(?::(?P<line>\d{1,9})| \(unknown line\))(?: \[inlined\])?$",
        _julia_frame,
        "julia",
    ),
    row("mpich", "error stack:", r"(?:.{0,80} )?Fatal error in P?MPI_\w{2,40}: .{0,200}error stack:", _mpich_error),
    row("mpich", ")..", r"\s{0,4}(?P<name>[A-Za-z_]\w{2,80})\(\d{1,6}\)\.{2,80}:", outermost_first, "mpich"),
    row(
        "traceback",
        "tack of ",
        r"[~=-]{2,80} ?Stack of (?P<name>.{1,80}?) \((?P<id>\d{1,20})\) ?[~=-]{2,80}$",
        _stack_of,
    ),
    row(
        "traceback",
        "hreadID",
        r"[#*= -]{0,40}(?:[Pp]rocessID ?[=:] ?(?P<pid>\d{1,9})[,;]? ?)?"
        r"[Tt]hreadID ?[=:] ?(?P<id>\d{3,20})[#*= -]{0,40}$",
        _numbered_stack,
    ),
    row(
        "traceback",
        "# Thread",
        r"# Thread(?:ID)?: (?P<id>\d{3,20})$",
        lambda match: ThreadHead(id=match.group("id"), outermost_first=True),
    ),
    row("traceback", "hread: ", r"#{0,3} ?Thread: (?P<name>[\w.() -]{1,80}?) ?\((?P<id>\d{3,20})\)$", _stack_of),
    row("", "SIGQUIT: quit", r"SIGQUIT: quit$", lambda match: LogMessage(match.string.strip())),
    row("", " Timeout ", r"\+{3,80} Timeout \+{3,80}$", lambda _: LogMessage(TEST_TIMEOUT)),
    row(
        "compute-sanitizer",
        "Host Frame",
        r"=+\s{1,12}Host Frame: ?(?P<name>[^\s\[].{0,600}?)"
        r"(?: in (?P<file>[^\s:]{1,300}):(?P<line>\d{1,9}))? \[0x[0-9a-f]{1,16}\](?: in (?P<lib>\S{1,300}))?",
        native_frame,
    ),
    row("", "=== ", r"={9}\s{1,40}(?:in /|at 0x|at |by thread|Address |Saved |Device Frame)", detail),
    row(
        "cstack",
        "C stack trace",
        r"Current thread's C stack trace \(most recent call first\)",
        lambda _: ThreadHead(outermost_first=False),
    ),
    row(
        "cstack",
        "Binary file ",
        r"\s{1,8}Binary file \"(?P<lib>[^\"]{1,400})\", at (?P<name>[^\s+]{1,400})?(?:\+0x[0-9a-f]{1,16})?(?: \["
        r"(?P<pc>0x[0-9a-f]{1,16})\])?$",
        native_frame,
    ),
)
