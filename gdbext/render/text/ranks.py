"""Tables of ranks: jobs found on this host, ranks attached to gdb, what a command said for each of them."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from gdbext.model.attached_ranks import AttachedRank, RankOutputs, RankTable
from gdbext.model.job import Job, JobSnapshot, RankProcess, RankSnapshot, ranks_or_pids
from gdbext.model.text.ranges import counted
from gdbext.render.lines import joined, left_out
from gdbext.render.safe_text import clean, clean_line, milliseconds, rank_set, shorten, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table

_RANK = Column("rank", right=True)
_PID = Column("pid", right=True)
_TITLE = Column("title", least=12, keep=7)
_DEVICE = Column("device", least=6, keep=5)
_THREADS = Column("threads", right=True, keep=4)
_STATE = Column("state", least=6, keep=8)
_GROUPS = Column("groups", least=8, keep=3, accent="dim")
_SOURCE = Column("rank from", least=8, keep=1, accent="dim")
_HOST = Column("host", least=6, keep=2)

_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "blocked in the kernel (D)",
    "T": "stopped",
    "t": "traced",
    "Z": "zombie",
    "X": "dead",
    "I": "idle",
}
_DOUBTFUL_STATES = {"D", "T", "t", "Z", "X"}

LONGEST_TITLE = 60
MOST_PROBLEMS = 8


def jobs_lines(jobs: Sequence[Job], style: Style) -> List[str]:
    """All jobs, one below the other."""
    if not jobs:
        return ["No rank process was found on this host, or none that the options select."]
    hosts = {one.host for job in jobs for one in job.ranks}
    where = "this host" if len(hosts) < 2 else counted(len(hosts), "host")
    title = [f"{counted(len(jobs), 'job')} on {where}"] if len(jobs) > 1 else []
    return joined([title, *(job_lines(job, style) for job in jobs)])


def job_lines(job: Job, style: Style) -> List[str]:
    """Whose job, how many ranks of how many; the ranks; who else belongs to it; what to know."""
    world = f" of {job.world_size:,}" if job.world_size and job.world_size != len(job.ranks) else ""
    noun = "rank" if len(job.ranks) == 1 and not world else "ranks"
    title = f"{clean(job.engine, style) or 'job'}: {len(job.ranks):,}{world} {noun} ({clean(job.key, style)})"
    lines = [style.paint(shorten(title, style.width, style), "strong")]
    lines += process_table(job.ranks, style)
    lines += _absent(job.absent, style)
    if job.others:
        others = ", ".join(f"{clean(one.role, style)} (pid {one.pid})" for one in job.others[:MOST_PROBLEMS])
        more = f", {len(job.others) - MOST_PROBLEMS} more" if len(job.others) > MOST_PROBLEMS else ""
        lines += wrapped(f"Also of this job: {others}{more}", style, indent="  ", first="", most=3)
    return lines + _notes(job.notes, style)


def process_table(processes: Sequence[RankProcess], style: Style) -> List[str]:
    """Rank processes as /proc shows them."""
    columns = (_RANK, _PID, _TITLE, _DEVICE, _GROUPS, _THREADS, _STATE, _HOST, _SOURCE)
    rows = [
        Row(
            (*_identity(one, style), _groups(one, style), _number(one.threads), _state(one.state, style))
            + (clean(one.host, style), clean(one.rank_source, style)),
            "doubt" if one.state in _DOUBTFUL_STATES else "",
        )
        for one in processes
    ]
    return table(columns, rows, style)


def snapshot_table(processes: Sequence[RankSnapshot], style: Style) -> List[str]:
    """Ranks as one look saw them."""
    columns = (_RANK, _PID, _TITLE, _DEVICE, _THREADS, _STATE, Column("pause", right=True, keep=6), _HOST)
    rows = [
        Row(
            (
                *_identity(one, style),
                str(len(one.threads)),
                clean(one.state, style),
                milliseconds(one.pause_ms),
                clean(one.host, style),
            ),
            "" if one.state == "ok" else "doubt",
        )
        for one in processes
    ]
    lines = table(columns, rows, style)
    problems = [f"{one.label}: {clean(problem, style)}" for one in processes for problem in one.problems]
    return lines + _notes(problems, style)


def snapshot_lines(snapshot: JobSnapshot, style: Style) -> List[str]:
    """A look at a job that nobody has judged."""
    if not snapshot.processes:
        return ["No process was read.", *_notes(snapshot.problems, style)]
    lines = snapshot_table(snapshot.processes, style)
    return lines + _absent(snapshot.absent, style) + _notes(snapshot.problems, style)


def attached_lines(ranks: RankTable, style: Style) -> List[str]:
    """The ranks that gdb holds; the selected one is marked."""
    columns = (
        _RANK,
        Column("inferior", right=True, keep=6),
        _PID,
        _TITLE,
        _DEVICE,
        _THREADS,
        _STATE,
        Column("stopped for", right=True, keep=6),
        Column("attach", right=True, keep=1, accent="dim"),
    )
    lines = table(columns, [_attached_row(one, style) for one in ranks.ranks], style)
    said: Dict[str, List[RankProcess]] = {}
    for one in ranks.ranks:
        if one.problem:
            said.setdefault(one.problem, []).append(one.process)
    problems = [f"{ranks_or_pids(processes)}: {problem}" for problem, processes in said.items()]
    return lines + _absent(ranks.absent, style) + _notes(problems, style) + _notes(ranks.notes, style)


def _attached_row(one: AttachedRank, style: Style) -> Row:
    rank, pid, title, device = _identity(one.process, style)
    cells = (
        f"{style.current} {rank}" if one.current else rank,
        _number(one.number),
        pid,
        title,
        device,
        _number(one.process.threads),
        clean(one.state, style),
        milliseconds(one.held_ms),
        milliseconds(one.attach_ms),
    )
    return Row(cells, "bad" if one.problem else "strong" if one.current else "")


def output_lines(outputs: RankOutputs, style: Style) -> List[str]:
    """What a gdb command printed, below a heading for each rank; gdb's own lines keep their form."""
    lines: List[str] = []
    for one in outputs.outputs:
        lines.append(style.paint(f"{ranks_or_pids([one.process])} (inferior {one.number})", "strong"))
        lines += [clean_line(line.expandtabs(), style).rstrip() for line in one.text.splitlines()]
        if one.error:
            lines.append(style.paint(shorten(clean(one.error, style), style.width, style), "bad"))
    return lines


def _identity(one: Union[RankProcess, RankSnapshot], style: Style) -> Tuple[str, str, str, str]:
    return (
        "?" if one.rank is None else str(one.rank),
        _number(one.pid),
        shorten(clean(one.title, style), LONGEST_TITLE, style),
        clean(one.device, style),
    )


def _number(value: Optional[int]) -> str:
    return "" if value is None else str(value)


def _groups(one: RankProcess, style: Style) -> str:
    """`tp1 pp0`: the place in the parallel groups."""
    return " ".join(f"{clean(name, style)}{number}" for name, number in one.labels.items())


def _state(letter: Optional[str], style: Style) -> str:
    return _STATES.get(letter or "", clean(letter, style))


def _absent(ranks: Sequence[int], style: Style) -> List[str]:
    if not ranks:
        return []
    noun = "Rank" if len(ranks) == 1 else "Ranks"
    text = f"{noun} {rank_set(ranks, style, style.width // 2)}: no process found on this host."
    return [style.paint(text, "bad")]


def _notes(notes: Sequence[str], style: Style) -> List[str]:
    lines = [line for note in notes[:MOST_PROBLEMS] for line in wrapped(clean(note, style), style, "  ", "", most=3)]
    return lines + left_out(len(notes) - MOST_PROBLEMS, style, "more")


RENDERERS: Mapping[type, Callable[..., List[str]]] = {
    Job: job_lines,
    JobSnapshot: snapshot_lines,
    RankTable: attached_lines,
    RankOutputs: output_lines,
}
LIST_RENDERERS: Mapping[type, Callable[..., List[str]]] = {
    Job: jobs_lines,
    RankProcess: process_table,
    RankSnapshot: snapshot_table,
}
