"""The advice that means something here: rows of knowledge whose conditions hold."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import List, Optional, Sequence, Set, Tuple

from gdbext.analysis.logs.lines_of_logs import all_lines, lines
from gdbext.analysis.logs.progress_in_logs import is_crowded
from gdbext.analysis.progress.begun import awaits_answer
from gdbext.analysis.progress.own_hangs.loop_tasks import requests_of
from gdbext.analysis.stacks.text_kind import Shown, shown_by_all
from gdbext.analysis.unread.open_stacks import look_again_remedy
from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import JobView, Party
from gdbext.analysis.view.places import waits_in
from gdbext.knowledge.causes.remedies import REMEDIES
from gdbext.knowledge.causes.remedies.remedy_constants import MUTEX_ADDRESS
from gdbext.knowledge.causes.what_texts_show import LATER, LIVES, TWICE
from gdbext.knowledge.dump_tools import (
    AT_PROMPT,
    CORE,
    CORE_FILES,
    DEBUGGER_RUNS,
    DUMP_FILE,
    DUMP_TOOLS,
    ERROR,
    ERROR_NAMES,
    LOCK_FILE,
    LOCK_NAMES,
    LOG_FILE,
    LOG_NAMES,
    MUTEX,
    OF_EACH,
    PID,
    PLACE,
    RUNS_TWICE,
    TO_FILE,
    TWICE_AT_PROMPT,
    DumpTool,
)
from gdbext.knowledge.errors.compute_sanitizer import KINDS
from gdbext.knowledge.frames.python.python_libraries import RESULTS_OF_OTHERS
from gdbext.knowledge.frames.system.linux_kernel import GPU_HELPERS, GPU_MODULE
from gdbext.knowledge.labels import WAIT_GROUPS
from gdbext.knowledge.log_lines.last_words import PROMPT, SAVED
from gdbext.knowledge.row_kinds import RemedyRule
from gdbext.model.codes import Given
from gdbext.model.text.digits import integer_or_none
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import Remedy

_NCCL_FILE = re.compile(r"libnccl\.so\.(\d+\.\d+\.\d+)")
_PROMPT = regex(re.escape(PROMPT).replace(r"\{\}", r"(?P<debugger>[\w-]+)"))
_SAVED = regex(SAVED.format(path=r"(?P<path>\S+)"))
_LONGER = "samples that are far apart tell a long step from a rank that is stuck"
_HOST = "host cores, or a snapshot or stacks of the same moment (--save, py-spy dump), beside the GPU cores"
_FILES = ((LOCK_FILE, LOCK_NAMES, "FILE"), (LOG_FILE, LOG_NAMES, "the log of that process"))
MOST = 5
_MOST_CHARACTERS = 200
"""From which on an answer cuts advice."""


def remedies(view: JobView, best: Candidate) -> Tuple[Remedy, ...]:
    """What to do about the candidate's cause, in the order of the rows; before them what makes the answer surer."""
    seen = best.culprits or best.victims or view.parties
    seen = (*seen, *view.of("fatal")) if best.cause == "unknown" else seen
    kinds = {_kind(view, party) for party in seen}
    if best.cause == "unknown" and not seen:  # helper threads alone: did their process end?
        kinds = {one.wait.kind for one in view.processes if WAIT_GROUPS[one.wait.kind] == "fatal"}
    if best.decided_by is not None:
        of_tasks = {row.command: row.reason for row in RESULTS_OF_OTHERS.values()}
        reason = of_tasks.get(best.decided_by, _LONGER if view.parties else _HOST)
        return (Remedy(f"Run {best.decided_by}", reason),)
    fitting = [rule for rule in REMEDIES if rule.cause == best.cause and _holds(rule, view, best, kinds)]
    fitting = [rule for rule in fitting if not rule.last] or fitting
    shown = what_the_text_shows(view)
    advice = [_after_the_look(Remedy(rule.action, rule.reason), shown) for rule in fitting]
    advice = [replace(one, action=_filled_in(one.action, view, best)) for one in dict.fromkeys(advice)]
    debugger = _debugger_of(view) if shown is None else ""
    advice = [replace(one, action=_at_prompt(one.action, debugger)) for one in advice] if debugger else advice
    return (*look_again_remedy(view, best), *advice)[:MOST]


def what_the_text_shows(view: JobView) -> Optional[Shown]:
    """What the text is, where it is no look at processes that live."""
    if view.given not in (Given.TEXT, Given.LOG):
        return None
    if view.parties:
        return shown_by_all([one.process for one in view.parties], [one.thread for one in view.parties])
    processes = view.snapshot.processes
    return shown_by_all(processes, [next(iter(one.threads), None) for one in processes])


def _after_the_look(remedy: Remedy, shown: Optional[Shown]) -> Remedy:
    """Advice that needs a living process, as far as it means something after the moment that the text shows."""
    if shown is None or not re.search(LIVES, remedy.action) or re.match(LATER, remedy.action):
        return remedy
    if shown.row.once and TWICE in remedy.action:
        return Remedy(shown.row.once, "faulthandler prints no native frames, which show what a C call waits for")
    if shown.row.advice:
        return Remedy(shown.row.advice, shown.row.reason)
    action = f"{remedy.action[:1].lower()}{remedy.action[1:]}".replace(PID, "PID")  # the next process has another one
    return replace(remedy, action=f"{shown.row.again}: {action}") if shown.row.again else remedy


def _filled_in(action: str, view: JobView, best: Candidate) -> str:
    """With the command, the file and the error that this look calls for."""
    error = re.search(ERROR_NAMES, best.summary)
    action = action.replace(ERROR, error["error"] if error else "NAME")
    for place, names, unknown in _FILES:
        if place in action:
            found = next(filter(None, (re.search(names, line.text) for line in lines(view))), None)
            named = action.replace(place, found["path"]) if found else ""
            action = named if named and len(named) < _MOST_CHARACTERS else action.replace(place, unknown)
    if DUMP_FILE in action:
        saved = [found["path"] for found in (_SAVED.match(text) for _, text in all_lines(view)) if found is not None]
        saved.sort(key=lambda path: not path.startswith("/"))  # other names are of a folder that nobody knows
        action = action.replace(DUMP_FILE, saved[0] if saved else "FILE")
    action = action.replace(CORE, _core_of(view))
    pid, host = _pid(view)
    there = f"On {host}: " if host and any(word in action for word in (PID, PLACE)) else ""
    action = action.replace(PID, pid)
    if MUTEX in action:
        addresses = filter(None, (_value(one, MUTEX_ADDRESS) for one in _blamed(view, best)))
        action = action.replace(MUTEX, hex(next(addresses, 0)))
    if PLACE in action or OF_EACH in action:
        tool = _dump_of(view)
        action = action.replace(PLACE, tool.command.replace("PID", pid)).replace(OF_EACH, tool.command)
        action = f"{tool.when}, {action[:1].lower()}{action[1:]}" if tool.when else action
        otherwise = f" ({tool.otherwise})" if tool.otherwise else ""
        action += otherwise if len(action) + len(otherwise) < _MOST_CHARACTERS else ""
    return f"{there}{action[:1].lower()}{action[1:]}" if there else action


def _debugger_of(view: JobView) -> str:
    """The debugger at whose prompt the stacks of the one process were printed."""
    processes = view.snapshot.processes
    lines = [line for process in processes for thread in process.threads for line in thread.problems]
    names = {match["debugger"] for match in map(_PROMPT.match, lines) if match is not None}
    return names.pop() if len(processes) == 1 and len(names) == 1 else ""


def _at_prompt(action: str, debugger: str) -> str:
    """The advice with what the debugger that has the process runs."""
    action = re.sub(
        RUNS_TWICE, lambda found: TWICE_AT_PROMPT.format(command=found["command"], debugger=debugger), action
    )
    return re.sub(
        DEBUGGER_RUNS,
        lambda found: (
            AT_PROMPT.format(command=found["command"], debugger=debugger) + (TO_FILE if found["file"] else "")
        ),
        action,
    )


def _pid(view: JobView) -> Tuple[str, str]:
    """The pid and the host of the one process of a text, for commands; else what stands for them."""
    processes = view.snapshot.processes
    if len(processes) != 1 or processes[0].given is not Given.TEXT or not processes[0].pid:
        return "PID", ""
    return str(processes[0].pid), processes[0].host or ""


def _blamed(view: JobView, best: Candidate) -> Sequence[Party]:
    return best.culprits or best.victims or view.parties


def _value(party: Party, wanted: Tuple[str, str]) -> Optional[int]:
    """The number that an argument of a function on its stack has."""
    function, name = wanted
    found = (frame.captures.get(name) for frame in party.calls if regex(function).match(frame.function or ""))
    return next((value for value in found if isinstance(value, int)), None)


def _core_of(view: JobView) -> str:
    """What the system of these processes keeps of one that died."""
    frames = (frame for process in view.snapshot.processes for thread in process.threads for frame in thread.calls)
    paths = [path for frame in frames for path in (frame.file, frame.module) if path]
    return next(text for pattern, text in CORE_FILES if not pattern or any(re.match(pattern, one) for one in paths))


def _dump_of(view: JobView) -> DumpTool:
    """How to print all stacks where these came from."""
    sources = [process.source for process in view.snapshot.processes]
    python = _has_python(view)
    fitting = (tool for tool in DUMP_TOOLS if python or not tool.of_python)
    return next(
        tool
        for tool in fitting
        if any(re.match(tool.sources, one) for one in sources)
        or any(_goes_through(one, tool.functions) or _stays_in(one, tool.modules) for one in view.parties)
        or not tool.sources
    )


def _kind(view: JobView, party: Party) -> str:
    """A process of which no stack was read waits in what its log says."""
    return party.kind if party.thread is not None else view.processes[party.index].wait.kind


def _holds(rule: RemedyRule, view: JobView, best: Candidate, kinds: Set[str]) -> bool:
    if rule.kinds and kinds.isdisjoint(rule.kinds):
        return False
    if rule.given and view.given not in rule.given:
        return False
    if rule.held is not None and rule.held != view.is_held:
        return False
    if rule.set_in and not _is_set(view, rule.set_in):
        return False
    if rule.unset_in and _is_set(view, rule.unset_in):
        return False
    if rule.threads_as_ranks is not None and rule.threads_as_ranks != view.threads_as_ranks:
        return False
    if rule.python is not None and rule.python != _has_python(view):
        return False
    if rule.absent is not None and rule.absent != bool(best.absent):
        return False
    if rule.named is not None and rule.named != bool(best.culprits):
        return False
    if rule.gaps and not view.gaps:
        return False
    if rule.alone is not None and rule.alone != _is_alone(view):
        return False
    if rule.not_kinds and _is_alone(view) and not kinds.isdisjoint(rule.not_kinds):
        return False
    if rule.whole is not None and rule.whole != _is_whole(view):
        return False
    if rule.itself is not None and rule.itself != _waits_for_itself(best):
        return False
    if rule.idle is not None and rule.idle != all(map(_may_rest, view.parties)):
        return False
    if rule.helpers and (view.parties or not view.unseen or not any(one.threads for one in view.unseen)):
        return False
    if rule.reported is not None and not _reported_fits(rule.reported, view):
        return False
    known_statements = {statement.says for witness in view.snapshot.witnesses for statement in witness.statements}
    if (rule.said and rule.said not in known_statements) or rule.not_said in known_statements:
        return False
    if (rule.line or rule.not_line) and not _line_fits(rule, view):
        return False
    if rule.request and not any(awaits_answer(view, party) or requests_of(party) for party in view.parties):
        return False
    if rule.killed_child and not any(one.activity and one.activity.killed for one in view.snapshot.processes):
        return False
    if rule.replaced and not any(one.process.activity and one.process.activity.replaced for one in best.culprits):
        return False
    if rule.crowded is not None and rule.crowded != is_crowded(view):
        return False
    blamed = _blamed(view, best)
    if rule.knows[0] and not any(_value(party, rule.knows) for party in blamed):
        return False
    if rule.lacks[0] and any(_value(party, rule.lacks) for party in blamed):
        return False
    if (rule.rules or rule.not_rules) and not _rules_fit(rule, view, blamed):
        return False
    if rule.module and not any(waits_in(party, rule.module) for party in blamed):
        return False
    if rule.driver and not any(re.match(rule.driver, _driver_of(party)) for party in blamed):
        return False
    if rule.through and not any(_goes_through(party, rule.through) for party in blamed):
        return False
    if rule.not_through and any(_goes_through(party, rule.not_through) for party in blamed):
        return False
    if rule.pasted_from and not any(re.match(rule.pasted_from, party.process.source) for party in blamed):
        return False
    return _release_fits(rule, view)


def _rules_fit(rule: RemedyRule, view: JobView, blamed: Sequence[Party]) -> bool:
    """Whether rows of frames or log lines decided that the advice is for, and none that it is useless for."""
    decided = {*(party.judged.rule for party in blamed), *(line.rule.id for line in lines(view))}
    return not decided.intersection(rule.not_rules) and (not rule.rules or not decided.isdisjoint(rule.rules))


def _line_fits(rule: RemedyRule, view: JobView) -> bool:
    texts = [text for _, text in all_lines(view)]
    if rule.rules:
        texts = [one.text for one in lines(view) if one.rule.id in rule.rules]
    if rule.not_line and any(re.search(rule.not_line, text) for text in texts):
        return False
    return not rule.line or any(re.search(rule.line, text) for text in texts)


def _may_rest(party: Party) -> bool:
    """Whether it may wait for work, as far as its wait tells."""
    return party.judged.idle or party.takes_orders or party.kind in ("io", "ipc-queue", "condvar-idle")


def _is_alone(view: JobView) -> bool:
    return len(view.parties) + len(view.unseen) < 2


def _is_whole(view: JobView) -> bool:
    """Whether the numbers of gdb's threads have no gap: then none of the process is missing."""
    threads = [thread.id for process in view.snapshot.processes for thread in process.threads]
    numbers = {integer_or_none(one) for one in threads}
    by_gdb = all(process.source == "text:gdb" for process in view.snapshot.processes)
    return by_gdb and len(threads) > 1 and numbers == set(range(1, len(threads) + 1))


def _waits_for_itself(best: Candidate) -> bool:
    """Whether a thread of the chain waits for what it holds."""
    return best.itself or any(
        one.source.kind in ("rank", "thread") and one.target.id == two.source.id and two.target.id == one.source.id
        for one, two in zip(best.chain, best.chain[1:])
    )


def _driver_of(party: Party) -> str:
    """The module of the GPU's driver that its stack goes through."""
    modules = (frame.library or "" for frame in party.calls)
    return next((one for one in modules if re.match(GPU_MODULE, one) and not re.match(GPU_HELPERS, one)), "")


def _stays_in(party: Party, module: str) -> bool:
    """Whether every frame is of that code."""
    calls = party.calls
    return bool(calls) and all(re.match(module, frame.library or "") for frame in calls)


def _goes_through(party: Party, function: str) -> bool:
    return any(re.match(function, frame.function or "") for frame in party.calls)


def _reported_fits(wanted: Tuple[str, ...], view: JobView) -> bool:
    kinds = {error.kind for process in view.snapshot.processes for error in process.gpu_errors}
    gravest = next((kind for kind in KINDS if kind in kinds), None)
    return gravest in wanted if wanted else not kinds


def _is_set(view: JobView, wanted: str) -> bool:
    name, _, value = wanted.partition("=")
    got = view.environment(name)
    return got is not None and (not value or got.upper() == value.upper())


def _has_python(view: JobView) -> bool:
    if any(process.python is not None for process in view.snapshot.processes):
        return True
    threads = (party.thread for party in view.parties if party.thread is not None)
    return any(frame.language == "python" for thread in threads for frame in thread.calls)


def _release_fits(rule: RemedyRule, view: JobView) -> bool:
    """Where the release is unknown, advice that holds only for some releases is left out."""
    first, last = rule.nccl
    if not (first or last):
        return True
    release = _nccl_release(view)
    if release is None:
        return False
    return (not first or release >= _numbers(first)) and (not last or release <= _numbers(last))


def _nccl_release(view: JobView) -> Optional[Tuple[int, ...]]:
    for process in view.snapshot.processes:
        for library in process.libraries:
            match = _NCCL_FILE.search(library)
            if match:
                return _numbers(match.group(1))
    return None


def _numbers(release: str) -> Tuple[int, ...]:
    pieces: List[int] = [int(piece) for piece in release.split(".")]
    return tuple(pieces)
