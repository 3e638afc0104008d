"""Several jobs in one look: pids of two jobs, or two jobs mixed in one log. Each is judged by itself.

Ranks of one job have different numbers, so a number that comes twice proves that something else is mixed in. What
tells the jobs apart then: variables of the launcher, the program, the engine, the size, or their order in the text.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

from gdbext.analysis.view.candidate import one_lower
from gdbext.analysis.view.wording import start
from gdbext.knowledge.labels import CONFIDENCE
from gdbext.knowledge.launch.launchers import VARIABLES
from gdbext.model.considered_hypotheses import Considered, Regrade
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import ranges_text
from gdbext.model.verdict import Diagnosis, Evidence, Verdict
from gdbext.model.waits import Edge, Hypothesis, Node

Indexes = Tuple[int, ...]

_OF_A_JOB = tuple(dict.fromkeys(name for row in VARIABLES for name in row.job))
_PROGRAM = regex(r"(?:\S*/)?([\w.-]+\.py)(?:\s|$)")
_MOST_JOBS = 16
_MOST_NAMED = 3


def jobs_of(snapshot: JobSnapshot) -> Tuple[Indexes, ...]:
    """Indexes of the processes of each job; one group where nothing proves that there are several."""
    everybody = tuple(range(len(snapshot.processes)))
    ranked = [process for process in snapshot.processes if process.rank is not None]
    launched = tuple(name for name in _OF_A_JOB if ranked and all(name in one.environment for one in ranked))
    by_launcher = _grouped(ranked, lambda process: " ".join(process.environment[name] for name in launched))
    if by_launcher and len(ranked) == len(everybody):
        return by_launcher
    if not repeated_ranks(ranked):
        return (everybody,)
    by_marks = (_grouped(ranked, key) for key in (_program, _engine, _size))
    found = by_launcher or next(filter(None, by_marks), ()) or _in_order(ranked)
    return _with_the_others(found, everybody) if found else (everybody,)


def repeated_ranks(processes: Sequence[RankSnapshot]) -> List[int]:
    """Rank numbers that more than one process has. The same process may have been read from two files."""
    named = {(one.host, one.pid if one.pid is not None else -one.index - 1, one.rank) for one in processes}
    counts = Counter(rank for _, _, rank in named if rank is not None)
    return sorted(rank for rank, count in counts.items() if count > 1)


def _program(process: RankSnapshot) -> Optional[str]:
    found = re.search(_PROGRAM.pattern, process.title or "")
    return found.group(1) if found else None


def _engine(process: RankSnapshot) -> Optional[str]:
    return process.engine


def _size(process: RankSnapshot) -> Optional[str]:
    return str(process.world_size) if process.world_size else None


def _grouped(ranked: Sequence[RankSnapshot], key: Callable[[RankSnapshot], Optional[str]]) -> Tuple[Indexes, ...]:
    """Jobs by a mark that all ranks have; () where it leaves a number twice in one job, or tells nobody apart."""
    groups: Dict[Optional[str], List[RankSnapshot]] = {}
    for process in ranked:
        groups.setdefault(key(process), []).append(process)
    if None in groups or not 1 < len(groups) <= _MOST_JOBS or any(repeated_ranks(group) for group in groups.values()):
        return ()
    return tuple(tuple(process.index for process in group) for group in groups.values())


def _in_order(ranked: Sequence[RankSnapshot]) -> Tuple[Indexes, ...]:
    """A text that has one job after the other: where a number comes again the next one begins; all must be alike."""
    groups: List[List[RankSnapshot]] = [[]]
    taken: Set[Optional[int]] = set()  # numbers in the last group
    for process in ranked:
        if process.rank in taken:
            groups.append([])
            taken.clear()
        groups[-1].append(process)
        taken.add(process.rank)
    alike = len({frozenset(one.rank for one in group) for group in groups}) == 1
    if not alike or not 1 < len(groups) <= _MOST_JOBS or len(groups[0]) < 2:
        return ()
    return tuple(tuple(process.index for process in group) for group in groups)


def _with_the_others(groups: Sequence[Indexes], everybody: Indexes) -> Tuple[Indexes, ...]:
    """Processes without a number go with the job before them: dumps list a front end beside its workers."""
    owner = {index: number for number, group in enumerate(groups) for index in group}
    last = 0
    joined: List[List[int]] = [[] for _ in groups]
    for index in everybody:
        last = owner.get(index, last)
        joined[last].append(index)
    return tuple(map(tuple, joined))


def part(snapshot: JobSnapshot, indexes: Indexes) -> JobSnapshot:
    """One job of the look. What was said by nobody in particular may be of any job, so all of them hear it."""
    processes = tuple(
        dataclasses.replace(snapshot.processes[index], index=number) for number, index in enumerate(indexes)
    )
    size = max((one.world_size for one in processes if one.world_size), default=None)
    return dataclasses.replace(snapshot, processes=processes, world_size=size, absent=(), earlier=(), witnesses=())


def join_answers(snapshot: JobSnapshot, jobs: Sequence[Indexes], answers: Sequence[Diagnosis]) -> Verdict:
    """The gravest verdict of the jobs, in numbers of the whole look; the summary names all jobs."""
    gravest = max(range(len(jobs)), key=lambda number: _weight(answers[number].verdict))
    verdict, own = answers[gravest].verdict, jobs[gravest]
    others = "; ".join(
        f"{_named(snapshot, indexes)}: {answer.verdict.cause} ({answer.verdict.confidence} confidence)"
        for number, (indexes, answer) in enumerate(zip(jobs, answers))
        if number != gravest
    )
    summary = (
        f"These are {len(jobs)} jobs, judged separately. {start(_named(snapshot, own))}: {verdict.summary} "
        f"The {'other' if len(jobs) == 2 else 'others'}: {others}."
    )

    def whole(index: Optional[int]) -> Optional[int]:
        return None if index is None else own[index]

    return dataclasses.replace(
        verdict,
        summary=summary,
        culprits=tuple(own[index] for index in verdict.culprits),
        victims=tuple(own[index] for index in verdict.victims),
        decisive_process=whole(verdict.decisive_process),
        evidence=tuple(dataclasses.replace(one, process=whole(one.process)) for one in verdict.evidence),
        chain=tuple(_edge(edge, whole) for edge in verdict.chain),
        root=None if verdict.root is None else _node(verdict.root, whole),
        alternatives=tuple(_hypothesis(one, whole) for one in verdict.alternatives),
        unexplained=tuple(own[index] for index in verdict.unexplained),
        considered=_considered(verdict.considered, whole),
    )


_Whole = Callable[[Optional[int]], Optional[int]]


def _node(node: Node, whole: _Whole) -> Node:
    return dataclasses.replace(node, process=whole(node.process))


def _edge(edge: Edge, whole: _Whole) -> Edge:
    facts = tuple(dataclasses.replace(one, process=whole(one.process)) for one in edge.facts)
    return dataclasses.replace(edge, source=_node(edge.source, whole), target=_node(edge.target, whole), facts=facts)


def _hypothesis(one: Hypothesis, whole: _Whole) -> Hypothesis:
    def nodes(some: Sequence[Node]) -> Tuple[Node, ...]:
        return tuple(_node(node, whole) for node in some)

    return dataclasses.replace(
        one,
        roots=nodes(one.roots),
        chain=tuple(_edge(edge, whole) for edge in one.chain),
        blamed=nodes(one.blamed),
        explained=_indexes(one.explained, whole),
        unexplained=_indexes(one.unexplained, whole),
        weakest_edge=None if one.weakest_edge is None else _edge(one.weakest_edge, whole),
    )


def _indexes(some: Sequence[int], whole: _Whole) -> Indexes:
    return tuple(index for index in map(whole, some) if index is not None)


def _considered(one: Considered, whole: _Whole) -> Considered:
    return dataclasses.replace(
        one, hypotheses=tuple(_hypothesis(each, whole) for each in one.hypotheses), stuck=_indexes(one.stuck, whole)
    )


def mixed_up(snapshot: JobSnapshot, verdict: Verdict) -> Verdict:
    """Less sure, and said: rank numbers come twice and nothing tells the jobs apart."""
    numbers = repeated_ranks(snapshot.processes)
    if not numbers:
        return verdict
    text = (
        f"rank {ranges_text(numbers)} occurs more than once: two jobs, or two samples of one job; "
        "give one job at a time"
    )
    confidence = one_lower(verdict.confidence)
    considered = verdict.considered
    if confidence != verdict.confidence:
        considered = considered.regraded(Regrade("several jobs", verdict.confidence, confidence))
    return dataclasses.replace(
        verdict,
        confidence=confidence,
        considered=considered,
        evidence=(*verdict.evidence, Evidence(text)),
        missing=(text, *verdict.missing),
    )


def _named(snapshot: JobSnapshot, indexes: Indexes) -> str:
    processes = [snapshot.processes[index] for index in indexes]
    numbers = [one.rank for one in processes if one.rank is not None]
    pids = [str(one.pid) for one in processes if one.pid is not None]
    names = f"ranks {ranges_text(numbers)}" if numbers else f"{len(processes)} processes"
    some = ",".join(pids[:_MOST_NAMED]) + (",..." if len(pids) > _MOST_NAMED else "")
    programs = {_program(one) or one.engine for one in processes if one.rank is not None} - {None}
    program = f" of {programs.pop()}" if len(programs) == 1 else ""
    return f"{names}{program}" + (f" (pid {some})" if pids else "")


def _weight(verdict: Verdict) -> Tuple[bool, bool, bool, int]:
    undecided = verdict.decided_by is not None
    return verdict.finding, undecided, verdict.cause != "unknown", CONFIDENCE.index(verdict.confidence)
