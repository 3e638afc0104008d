"""`gdbext explain` and llm-explain: what a label of the answer means, put together from the rows that decide it."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import Dict, List, Optional, Sequence, Set, Tuple, Union

from gdbext.commands.names_in_patterns import names_in
from gdbext.commands.session_port import Session
from gdbext.knowledge.causes.end_states import END_STATES
from gdbext.knowledge.causes.held_by_frames import INTERRUPTED
from gdbext.knowledge.causes.remedies import REMEDIES, SELDOM, SHOWN_BY
from gdbext.knowledge.causes.remedies.remedy_constants import (
    ABORTS_COMMUNICATOR,
    ADDRESS,
    APPLE,
    BUILDS_EXTENSION,
    BY_OPENJDK,
    CHECK_OF_ENGINE,
    CHILD_WAITS,
    CONNECTS_TO_STORE,
    OF_LOCKED,
    PEER,
    POLLS,
    RDMA_COMMANDS,
    READER_WRITER,
    SHUTS_DOWN,
    SLEEPS,
    STATIC_INITIALIZER,
)
from gdbext.knowledge.causes.signatures import SIGNATURES
from gdbext.knowledge.causes.typical_calls import TYPICAL_CALLS
from gdbext.knowledge.causes.wait_causes import CAUSES as ROOTS
from gdbext.knowledge.causes.wait_causes import CauseRow
from gdbext.knowledge.causes.wait_kinds import WAITS
from gdbext.knowledge.device_code import DEVICE_FOCUS, WAVEFRONT
from gdbext.knowledge.dump_tools import STANDS_FOR
from gdbext.knowledge.errors.checks import WATCHDOG_ENDED
from gdbext.knowledge.frames import MESSAGES, RULES
from gdbext.knowledge.frames.failures import HELD_FOR_DEBUGGERS, LOCK_CHECKS
from gdbext.knowledge.frames.other_engines import BEGUN_IN_REALM, XRT_SERVERS
from gdbext.knowledge.frames.python.interpreter import LEADER_FIRST, LOCK_OF_PYTHON
from gdbext.knowledge.frames.system.library_locks import LOCKS_OF_ALLOCATORS
from gdbext.knowledge.frames.system.linux_kernel import (
    AMD_MODULES,
    INTEL_MODULES,
    KERNEL,
    NVIDIA_MODULES,
    OTHER_MODULES,
)
from gdbext.knowledge.labels import CAUSES, WAIT_KINDS
from gdbext.knowledge.log_lines import LOG_RULES
from gdbext.knowledge.log_lines.last_words import OF_ANOTHER
from gdbext.knowledge.row_kinds import FrameRule, RemedyRule
from gdbext.model.explanation import Explanation, Glossary, Sign
from gdbext.model.text.nearest import unknown_word_error
from gdbext.model.verdict import Remedy
from gdbext.model.waits import STATES, shown_kind

LABELS: Tuple[str, ...] = tuple(dict.fromkeys((*CAUSES, *WAIT_KINDS, *map(shown_kind, WAIT_KINDS), *STATES)))
"""Everything that can be explained."""

_QUOTE = '"'
_NAMELESS = ("other", "unknown")
_VENDORS = {
    "hip": "HIP",
    "acl": "Ascend ACL",
    "musa": "MUSA",
    "maca": "MACA",
    "cambricon": "Cambricon CNRT",
    "tops": "Enflame TOPS",
    "level": "Level Zero",
    "unified": "Unified Runtime",
    "hccl": "HCCL",
    "mccl": "MCCL",
    "cncl": "CNCL",
    "eccl": "ECCL",
    "bkcl": "BKCL",
    "flagcx": "FlagCX",
    "oneccl": "oneCCL",
    "nvshmem": "NVSHMEM",
}
"""Beginnings of the ids of rows that stand for another vendor's call, and what people call that interface."""
_READ = {"live": "read running ranks", "core": "opened core files", "text": "pasted stacks", "log": "have only logs"}
_READ_ALONE = {
    "live": "read one running process only",
    "core": "opened one core file only",
    "text": "pasted the stacks of one process only",
    "log": "have the log of one process only",
}
_MUST_HOLD = {
    "threads_as_ranks": "one process holds several ranks",
    "absent": "a rank has no process",
    "named": "the suspect is known",
    "whole": "all its threads were read",
    "itself": "a thread waits for a lock that it holds",
    "idle": "all that were read wait for work",
    "helpers": "helper threads alone were read",
}
_MUST_NOT_HOLD = {"named": "no suspect is known", "idle": "not all that were read wait for work"}
"""Conditions of a remedy by its field. The others that are false are usual, and need no word."""
_SHUTDOWN = "the call is part of a shutdown"
_STACK_SHOWS = {
    HELD_FOR_DEBUGGERS: "a signal's handler holds the process for a debugger",
    READER_WRITER: "the lock is a reader-writer lock",
    CONNECTS_TO_STORE: "a rank is connecting to the rendezvous store",
    LEADER_FIRST: "the others wait by design until rank 0 has worked alone",
    LOCK_CHECKS: "a lock's own deadlock check ended the process",
    INTERRUPTED: "a signal handler waits for the lock",
    ABORTS_COMMUNICATOR: "the call aborts a communicator",
    APPLE: "the GPU is Apple's",
    SHUTS_DOWN: "the lock is needed for the shutdown",
    BUILDS_EXTENSION: "torch builds an extension",
    CHILD_WAITS: "the call waits for a child process",
    STATIC_INITIALIZER: "a JVM class is being initialized",
    SLEEPS: "the shutdown sleeps in a loop",
    POLLS: "the call is one of a loop that polls",
    LOCK_OF_PYTHON: "Python code has called the lock",
    BEGUN_IN_REALM: "a task of Legion waits for an event",
    XRT_SERVERS: "torch_xla waits for its XRT servers",
    OF_LOCKED: "a function's name tells that it has a lock",
    RDMA_COMMANDS: "the call is a command to the driver of a network adapter",
}
"""What a function on the stack must be."""
_DRIVERS = {
    NVIDIA_MODULES: "the GPU is NVIDIA's",
    AMD_MODULES: "the GPU is AMD's",
    INTEL_MODULES: "the GPU is Intel's",
    OTHER_MODULES: "the GPU is another vendor's",
}
_LINE_SHOWS = {
    ADDRESS: "it has an address",
    PEER: "it names the other rank",
    BY_OPENJDK: "it is a JVM's",
    CHECK_OF_ENGINE: "a check of FasterTransformer, TurboMind or TensorRT-LLM names the error",
    OF_ANOTHER: "the exception tells of the end of another process",
    WAVEFRONT: "rocgdb printed the stack of a wavefront",
    DEVICE_FOCUS: "cuda-gdb printed the stack of a GPU kernel",
    WATCHDOG_ENDED: "torch's watchdog reports the error",
}
"""What a log line must be like."""
_STATEMENT_NAMES = {"shm-room": "/dev/shm is not full"}  # noqa: S108 - a place, no file of ours
"""What a witness must have said."""
_RECOGNISED = {
    KERNEL: "the thread waits in the Linux kernel",
    "nccl-cpu-barrier": "the ranks of a process wait for each other",
    "extension-lock": "the thread waits for a lock file",
    LOCKS_OF_ALLOCATORS[0]: "the lock is the allocator's own",
}
"""What a thread must be in: the module of a remedy, or the first of its frame rules."""
_PASTED = {
    "text:traceback": "the stack is a Python traceback",
    "text:gdb": "the stack is gdb's",
    "text:coredump": "the stack is coredumpctl's",
    "text:lldb": "the stack is lldb's",
    "text:go$": "the program is written in Go",
    "text:sanitizer": "the stack is a sanitizer's",
}
_REPORTS = {rule.id: rule.means for rule in LOG_RULES}
_REPORTED = {
    "invalid-access": "an invalid access",
    "device-fault": "a hardware exception",
    "race": "a race",
    "uninitialized": "a read of memory that was not written",
    "barrier": "an error of a barrier",
    "api-error": "a failed CUDA call",
    "leak": "memory that was not freed",
    "unused": "memory that was never used",
}
"""The gravest error of a sanitizer, in words."""
_ENDED = "exited-or-crashed"


def explain(label: Optional[str]) -> Union[Explanation, Glossary]:
    """The explanation of one label, or all labels. Raises `UsageError` for an unknown label."""
    if not label:
        return Glossary(tuple(map(_wait, WAIT_KINDS)), tuple(map(_cause, CAUSES)), tuple(map(_state, STATES)))
    label = label.strip().lower().replace("_", "-")
    label = next((kind for kind in WAIT_KINDS if shown_kind(kind) == label), label)
    if label in CAUSES:
        return _cause(label)
    if label in WAIT_KINDS:
        return _wait(label)
    if label in STATES:
        return _state(label)
    raise unknown_word_error("label", label, LABELS, "run `gdbext explain` to list all of them")


def _cause(label: str) -> Explanation:
    rules = [rule for rule in REMEDIES if rule.cause == label]
    signs = tuple(Sign(one.seen, one.source, one.why) for one in SIGNATURES if one.cause == label)
    sources = [sign.source for sign in signs] + [rule.source for rule in rules]
    shown = dict.fromkeys(kind for kind, causes in SHOWN_BY.items() if label in causes)
    shown.update(dict.fromkeys(kind for rule in rules for kind in rule.kinds))
    alike: Dict[Tuple[str, bool], List[RemedyRule]] = {}
    for rule in rules:
        alike.setdefault((rule.action, bool(_when(rule, ""))), []).append(rule)
    return Explanation(
        label=label,
        sort="cause",
        meaning=CAUSES[label],
        signs=signs,
        remedies=tuple(Remedy(_advice(same[0], alike=same[1:]), same[0].reason) for same in alike.values()),
        related=tuple(shown),
        sources=_unique(sources),
    )


def _wait(label: str) -> Explanation:
    rules = [rule for rule in RULES if rule.kind == label and rule.helper is None and not rule.like]
    said = [rule for rule in MESSAGES if rule.kind == label]
    signs = [Sign(_looks(rule), rule.source) for rule in rules]
    signs += [Sign(f"a log line with {names_in(rule.pattern, _QUOTE)}", rule.source) for rule in said]
    if not signs:
        signs = [Sign("no rule matches any frame of the thread", "gdbext/knowledge/frames")]
    causes = SHOWN_BY.get(label, ())
    roots = sorted(filter(partial(_begins_with, label), ROOTS), key=lambda row: label not in row.via)
    remedies = [rule for cause in causes for rule in REMEDIES if rule.cause == cause and not rule.kinds]
    remedies += sorted((rule for rule in REMEDIES if label in rule.kinds), key=lambda rule: rule.cause in SELDOM)
    causes_of_rows = (*causes, *(row.cause for row in roots), *(rule.cause for rule in remedies))
    return Explanation(
        label=label,
        sort="wait",
        meaning=WAIT_KINDS[label] + (f" (`{label}` in --json)" if shown_kind(label) != label else ""),
        signs=tuple(signs),
        remedies=tuple(Remedy(_advice(rule, rule.cause), rule.reason) for rule in remedies),
        related=_unique([one for one in causes_of_rows if one not in _NAMELESS]),
        sources=_unique([sign.source for sign in signs]),
        calls=TYPICAL_CALLS.get(label, ()),
    )


def _begins_with(label: str, row: CauseRow) -> bool:
    """Whether what a thread in that wait waits for, or what the GPU runs then, may be what the row is about."""
    wait = WAITS.get(label)
    if wait is None or not set(row.via).isdisjoint(WAIT_KINDS):
        return label in row.via
    reached = {"collective"} if wait.target == "device" else {wait.target}
    return reached.issuperset(row.resources or row.ends or ("",))


def _advice(rule: RemedyRule, cause: str = "", alike: Sequence[RemedyRule] = ()) -> str:
    """`If /dev/shm is not full: check ...`: what is to be done, behind the conditions. `cause`: told of a wait, which
    is a condition already. `alike`: rows with the same advice under other conditions."""
    when = " or ".join(filter(None, (_when(one, cause) for one in (rule, *alike))))
    action = rule.action
    for word, meaning in STANDS_FOR.items():
        action = action.replace(word, meaning)
    if not when:
        return action
    return f"If {when}: {action if action[1:2].isupper() else action[:1].lower() + action[1:]}"


def _when(rule: RemedyRule, cause: str) -> str:
    """`you pasted stacks and the wait is mutex`; "" where it holds always."""
    conditions = _looked_at(rule)
    if cause:
        conditions.append(f"{_SHUTDOWN} ({cause})" if cause in SELDOM else f"the cause is {cause}")
    else:
        conditions += _of_kinds(rule)
    said = _MUST_HOLD["named"] if rule.named and rule.kinds and not cause else ""
    conditions += [one for one in _conditions(rule) if one != said]
    *most, last = conditions or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _state(label: str) -> Explanation:
    row = next(one for one in END_STATES if one.state == label)
    causes = _unique([*row.causes, *(root.cause for root in ROOTS if label in root.states)])
    signs = tuple(Sign(text, row.source) for text in row.seen)
    return Explanation(
        label=label,
        sort="state",
        meaning=STATES[label],
        signs=signs,
        remedies=(Remedy(row.action, row.reason),),
        related=causes,
        sources=_unique([row.source]),
    )


def _looks(rule: FrameRule) -> str:
    """`cudaMallocHost, cudaHostAlloc, ...` of a row: its own pattern, without the marks that only a machine needs."""
    pieces = [names_in(rule.function) or "any function"]
    if rule.file:
        pieces.append(f"in {names_in(rule.file)}")
    if rule.module:
        pieces.append("of the kernel" if rule.module == KERNEL else f"of {names_in(rule.module)}")
    around = [f"called from {names_in(rule.caller)}"] if rule.caller else []
    around += [f"further out on the stack: {names_in(rule.under)}"] if rule.under else []
    if around:
        pieces.append(f"({'; '.join(around)})")
    ids = (other.id.partition("-")[0] for other in RULES if other.like == rule.id)
    others = list(dict.fromkeys(_VENDORS[one] for one in ids if one in _VENDORS))
    if others:
        pieces.append(f"(and the same calls of {', '.join(others)})")
    if rule.idle:
        pieces.append("(idle there is normal)")
    return ("Python: " if rule.language == "python" else "") + " ".join(pieces)


def _of_kinds(rule: RemedyRule) -> List[str]:
    """`the wait is mutex or wait-or-poll`; of what is for most waits, those that it is not for."""
    if not rule.kinds:
        return []
    if rule.kinds == (_ENDED,):
        return [f"the process has ended ({_ENDED})"]
    whose = "the suspect's wait" if rule.named else "the wait"
    others = [kind for kind in WAIT_KINDS if kind not in rule.kinds]
    if len(others) < len(rule.kinds):
        return [f"{whose} is not {_either_of(list(map(shown_kind, others)))}"]
    return [f"{whose} is {_either_of(list(map(shown_kind, rule.kinds)))}"]


def _looked_at(rule: RemedyRule) -> List[str]:
    """`you pasted the stacks of one process only`."""
    if rule.alone:
        return [f"you {_either_of([_READ_ALONE[one] for one in rule.given or ('live', 'core', 'text', 'log')])}"]
    if not rule.given or _reported_line(rule):
        return []
    return [f"you {_either_of([_READ[one] for one in rule.given])}"]


def _reported_line(rule: RemedyRule) -> List[str]:
    return [f'a log line reports "{_REPORTS[one]}"' for one in rule.rules[:1] if one in _REPORTS]


def _conditions(rule: RemedyRule) -> List[str]:
    """What must hold besides the wait, in words."""
    conditions = [f"{rule.set_in} is set"] if rule.set_in else []
    conditions += [words for name, words in _MUST_HOLD.items() if getattr(rule, name) is True]
    conditions += [words for name, words in _MUST_NOT_HOLD.items() if getattr(rule, name) is False]
    conditions += _reported_line(rule)
    conditions += [words for pattern, words in _LINE_SHOWS.items() if pattern == rule.line]
    conditions += [words for pattern, words in _STACK_SHOWS.items() if pattern == rule.through]
    conditions += [_DRIVERS[rule.driver]] if rule.driver else []
    conditions += ["the text has the address of the mutex"] if rule.knows[0] else []
    conditions += [_PASTED[rule.pasted_from]] if rule.pasted_from in _PASTED else []
    conditions += [_STATEMENT_NAMES[rule.said]] if rule.said in _STATEMENT_NAMES else []
    conditions += [_RECOGNISED[one] for one in (rule.module, *rule.rules[:1]) if one in _RECOGNISED]
    conditions += (
        [f"a sanitizer reports {_either_of([_REPORTED[one] for one in rule.reported])}"] if rule.reported else []
    )
    first, last = rule.nccl
    if first or last:
        conditions.append(
            f"NCCL is {first or 'any'} to {last.replace('.999', '.x')}" if last else f"NCCL is {first} or newer"
        )
    return conditions


def _either_of(names: Sequence[str]) -> str:
    """`a, b or c`."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def _unique(texts: List[str]) -> Tuple[str, ...]:
    """The pieces between semicolons, each once; `nccl#48` is left out behind `nccl#48, #70`."""
    seen: Set[str] = set()
    found: List[str] = []
    for piece in (piece.strip() for text in texts for piece in text.split(";") if piece.strip()):
        names = _names(piece)
        if not seen.issuperset(names):
            found.append(piece)
        seen.update(names)
    return tuple(found)


def _names(piece: str) -> List[str]:
    """`nccl#48, #70` names nccl#48 and nccl#70; any other piece names itself."""
    threads = [one.partition("#") for one in piece.split(", ")]
    if not all(mark for _, mark, _ in threads):
        return [piece]
    return [f"{where or threads[0][0]}#{number}" for where, _, number in threads]


def answer(_: Session, args: Namespace) -> object:
    return explain(args.label)
