"""Two saved looks compared: ranks matched by number (pids differ after a restart), their deciding threads by
`between_looks`, their stacks as merged trees, their communicators by what was launched."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Mapping, Optional, Set, Tuple

from gdbext.analysis.progress.between_looks import between_looks
from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.analysis.stacks.process_kind import judge_process
from gdbext.model.codes import ReadState
from gdbext.model.difference import CountDifference, JobDifference, RankDifference, StackDifference
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.look_origin import Origin
from gdbext.model.missing import Missing
from gdbext.model.stack import ThreadStack
from gdbext.model.stack_tree import StackTree, TreeNode
from gdbext.model.verdict import ProcessJudgement

_Key = Tuple[object, ...]
_Path = Tuple[str, ...]
_RAN = "it ran in between, and is in the same calls again"


def difference(before: JobSnapshot, after: JobSnapshot, origins: Tuple[Origin, Origin]) -> JobDifference:
    """What has changed between two looks, of which each may be of another run of the job."""
    olds, news, notes = _matched(before, after)
    judged_old = {key: judge_process(one) for key, one in olds.items()}
    judged_new = {key: judge_process(one) for key, one in news.items()}
    both = [key for key in news if key in olds and _read(olds[key]) and _read(news[key])]
    pairs = {key: _alike(olds[key], judged_old[key], news[key], judged_new[key]) for key in both}
    earlier = replace(before, processes=tuple(old for old, _ in pairs.values()))
    later = replace(after, processes=tuple(replace(new, index=at) for at, (_, new) in enumerate(pairs.values())))
    went, unmoved = between_looks(earlier, later, tuple(judged_new[key] for key in both))
    states = {key: "moved" if at in went else "same" if at in unmoved else "unknown" for at, key in enumerate(both)}
    ranks = [
        _rank(olds.get(key), news.get(key), judged_old.get(key), judged_new.get(key), states.get(key))
        for key in sorted({*olds, *news}, key=_in_order)
    ]
    trees = merge(before), merge(after)
    if trees[0].counts != trees[1].counts:
        stacks: Tuple[StackDifference, ...] = ()
        notes = (*notes, "stacks are not compared: the ranks of one snapshot have no numbers")
    else:
        stacks = tuple(_stacks(*trees))
    return JobDifference(
        before=origins[0], after=origins[1], ranks=tuple(ranks), stacks=stacks, counts=trees[1].counts, notes=notes
    )


_Processes = Dict[_Key, RankSnapshot]


def _matched(before: JobSnapshot, after: JobSnapshot) -> Tuple[_Processes, _Processes, Tuple[str, ...]]:
    """The processes of both looks by what they have in common, and what is to be said of it."""
    numbered = _numbered(before) and _numbered(after)
    olds, news = ({_key(one, numbered): one for one in look.processes} for look in (before, after))
    return (
        olds,
        news,
        ()
        if numbered
        else ("ranks have no numbers in one of the snapshots: gdbext matches processes by host and pid",),
    )


def _numbered(look: JobSnapshot) -> bool:
    numbers = [one.rank for one in look.processes]
    return None not in numbers and len(set(numbers)) == len(numbers)


def _key(process: RankSnapshot, numbered: bool) -> _Key:
    if numbered:
        return (process.rank,)
    return (process.host, process.pid) if process.pid is not None else (None, -1 - process.index)


def _in_order(key: _Key) -> Tuple[Tuple[bool, str, int], ...]:
    return tuple((isinstance(one, str), str(one), 0) if not isinstance(one, int) else (False, "", one) for one in key)


def _read(process: RankSnapshot) -> bool:
    return process.state != ReadState.LOST and any(thread.frames for thread in process.threads)


def _alike(
    old: RankSnapshot, judged_old: ProcessJudgement, new: RankSnapshot, judged_new: ProcessJudgement
) -> Tuple[RankSnapshot, RankSnapshot]:
    """Both as looks at one process. Of another process neither pids, thread ids, addresses nor counters compare, and
    after a new build lines do not: functions are left."""
    if old.pid == new.pid and old.host == new.host and old.pid is not None:
        return old, new
    was = next((thread for thread in old.threads if thread.id == judged_old.wait.thread), None)
    now = judged_new.wait.thread
    threads = () if was is None or now is None else (replace(_bare(was), id=now),)
    return (
        replace(old, pid=new.pid, host=new.host, rank=new.rank, threads=threads),
        replace(new, threads=tuple(_bare(one) if one.id == now else one for one in new.threads)),
    )


def _bare(thread: ThreadStack) -> ThreadStack:
    frames = tuple(replace(frame, line=None, captures={}) for frame in thread.frames)
    return replace(thread, frames=frames, turns=(), marks=())


def _rank(
    old: Optional[RankSnapshot],
    new: Optional[RankSnapshot],
    judged_old: Optional[ProcessJudgement],
    judged_new: Optional[ProcessJudgement],
    state: Optional[str],
) -> RankDifference:
    one = new or old
    assert one is not None
    why = None
    if old is None or new is None:
        state = "gone" if new is None else "new"
    elif state is None:
        state = "unknown"
        why = f"the {'first' if not _read(old) else 'second'} snapshot has no stack of it"
    elif state == "unknown":
        why = _RAN
    return RankDifference(
        name=one.label,
        state=state,
        rank=one.rank,
        pid_before=old.pid if old else None,
        pid_after=new.pid if new else None,
        wait_before=judged_old.wait.kind if judged_old else None,
        wait_after=judged_new.wait.kind if judged_new else None,
        why=why,
        counts=_counts(old, new) if old and new else (),
    )


def _counts(old: RankSnapshot, new: RankSnapshot) -> Tuple[CountDifference, ...]:
    """Of communicators that are in both: another run has others."""
    before, after = _launched(old), _launched(new)
    return tuple(
        CountDifference(communicator, kind, before[communicator][kind], count)
        for communicator, counts in after.items()
        for kind, count in sorted(counts.items())
        if kind in before.get(communicator, {}) and before[communicator][kind] != count
    )


def _launched(process: RankSnapshot) -> Dict[int, Mapping[str, int]]:
    return {
        one.hash: one.counts
        for one in process.communicators
        if isinstance(one.hash, int) and not isinstance(one.counts, Missing)
    }


def _stacks(before: StackTree, after: StackTree) -> Iterator[StackDifference]:
    """Stacks that other ranks have now, the most ranks first."""
    olds, news = _leaves(before), _leaves(after)
    found: List[StackDifference] = []
    for calls in dict.fromkeys([*news, *olds]):
        was, now = olds.get(calls, set()), news.get(calls, set())
        if was != now:
            found.append(StackDifference(calls, tuple(sorted(was)), tuple(sorted(now))))
    yield from sorted(found, key=lambda one: (-len({*one.after} ^ {*one.before}), one.calls))


def _leaves(tree: StackTree) -> Dict[_Path, Set[int]]:
    """All stacks of a tree by their functions, and who has them. Ranks of a call that none of its inner calls has end
    there."""
    found: Dict[_Path, Set[int]] = {}
    todo: List[Tuple[TreeNode, _Path]] = [(root, ()) for root in tree.roots]
    while todo:
        node, callers = todo.pop()
        path = (*callers, node.function or "?")
        ends = {*node.ranks} - {rank for child in node.children for rank in child.ranks}
        if ends:
            found.setdefault(path, set()).update(ends)
        todo += [(child, path) for child in node.children]
    return found
