"""Words by which a log line tells of a fault. Lines that no other row knows are quoted by them, never explained."""

from typing import NamedTuple, Optional, Tuple

from gdbext.model.text.patterns import regex

SEVERITIES: Tuple[Tuple[str, str], ...] = (
    (
        r"\b(?:FATAL|CRITICAL|PANIC|ERROR|[Ff]atal)\b|^[EF]\d{4,8} \d\d:\d\d:\d\d"
        r"|\b[A-Z]\w{2,40}(?:Error|Exception): \S"
        r"|(?i:\b(?:internal|runtime) error\b|\berror: \S|\bassert(?:ion)?\b.{0,80}\bfail|\bout of memory\b)",
        "glog, Python logging, spdlog, UCX; C assert(3); names of exceptions in Python, Java and C#",
    ),
    (
        r"\bNCCL WARN\b|\bCheck failed\b"
        r"|(?i:\b(?:failed|failure|aborting|timed out|timeout (?:after|was)|unable to|could not|cannot|couldn't|refused"
        r"|denied|not supported|unsupported|unreachable|broken pipe|no such device|indefinitely|deadlocked"
        r"|deadlock state|corrupt(?:ed|ion)|disconnected|connection (?:reset|closed|lost)|no route to host"
        r"|no space left|no (?:devices?|gpus?) (?:were )?(?:found|available)|returned error|errno"
        r"|error [1-9]\d{0,4})\b)|^.{0,60}\b[Ee]rror\b",
        "strerror(3); words of NCCL, UCX, Open MPI, CUDA, Ray and engines",
    ),
)
"""The most severe words first, each with where they come from."""

QUIET = r"\b(?:INFO|DEBUG|TRACE|VERBOSE|DETAIL)\b"
"""Levels of lines that tell of no fault."""

NO_FAULT = (
    r"(?i:\b(?:no|0|without|ignor\w{1,5}) errors?\b|\berrors?[=:] ?(?:0|none|false|null)\b|\bfail\w*[=:] ?(?:0|none)\b"
    r"|\b(?:retrying|will retry|on_?error|error_?handler|set_?error)\b|severity=Corrected|--\w[\w-]*error)"
    r"|:\s*$"
    # gdb's remarks, commands and source code beside stacks
    r"|^\W{0,6}(?:[Ww]arning: )?(?:\d{1,6}\s+)?\S{1,200}: No such file or directory\.?$|\(gdb\)|\(lldb\)"
    r"|^\W{0,6}(?i:warning): (?!C[Uu][Dd][Aa])|debug(?:ging )? ?(?:symbols|info)|Python Exception|DW_(?:TAG|ATE)_"
    r"|Error occurred in Python command|Cannot access memory at address|\b(?<!NCCL )WARN(?:ING)?\b|CCL_WARN"
    r"|^\s*(?:[$>|#*]|//|>>>|\d{1,4}:?\s|->|=>)|[;{}]\s*$"
    r"|^\s*(?:if|for|while|return|raise|try|except|assert|throw|else|case|import|from|def|self|with|print)\b"
)
"""A line of that kind is a setting, a heading, source code, a debugger's remark, or tells what went well in the end."""

FOLLOWS = (
    r"(?i)\bsignal\b|sigquit|\bsegfault|segmentation fault|core dumped|terminate called|\bexit(?:ed|ing|code| code)?\b"
    r"|failed \(exitcode|to avoid data inconsistency|operations have failed or timed out|failure detected by watchdog"
    r"|watchdog caught|watchdog thread terminated|dump a?signal|kernel errors might be|this may indicate"
    r"|job has been aborted|\.py FAILED|cluster registration failed|error traceback|inner error|additional grpc error"
    r"|It looks like \w+ failed for some reason"
    r"|rectify the fault|could be from a previous|trace of the failed collective|\bpy-?spy\b|ERROR \(\d"
    r"|fatal exception: |prints this stack|fatal python error|_run_exitfuncs|deprecated"
)
"""What is printed after any failure, and says nothing of its reason."""

_SEVERITIES = tuple(regex(pattern) for pattern, _ in SEVERITIES)
_QUIET, _NO_FAULT, _FOLLOWS = map(regex, (QUIET, NO_FAULT, FOLLOWS))


class Fault(NamedTuple):
    """How severe the fault is of which a line tells, 0 the most severe, and where the word stands that tells it."""

    severity: int
    start: int


def fault_in(line: str) -> Optional[Fault]:
    """None for a line that tells of no fault, or only that there was one."""
    if _QUIET.search(line):
        return None
    words = ((number, pattern.search(line)) for number, pattern in enumerate(_SEVERITIES))
    found = next((Fault(number, match.start()) for number, match in words if match), None)
    return None if found is None or _NO_FAULT.search(line) or _FOLLOWS.search(line) else found
