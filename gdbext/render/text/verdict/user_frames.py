"""Where the culprits are in the user's own code: every such frame, with its file and line."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from gdbext.model.job import RankSnapshot
from gdbext.model.stack import ThreadStack
from gdbext.model.text.ranges import counted
from gdbext.model.verdict import Diagnosis
from gdbext.render.safe_text import clean
from gdbext.render.style import Style
from gdbext.render.text.verdict.process_names import names_of_processes
from gdbext.render.text.verdict.stacks import call_text, is_of_user

MOST = (24, 10, 6)
"""Frames that are shown of one thread, of each of two, of each of three: the innermost."""


def user_frames(diagnosis: Diagnosis, style: Style) -> List[str]:
    """Numbered as in gdb. Processes whose frames are the same are told together."""
    groups: Dict[Tuple[object, ...], List[Tuple[RankSnapshot, ThreadStack, List[int]]]] = {}
    for process, thread in _decisive(diagnosis):
        numbers = [number for number, frame in enumerate(thread.frames) if is_of_user(frame)]
        if numbers:
            key = tuple((number, thread.frames[number].function, thread.frames[number].line) for number in numbers)
            groups.setdefault((thread.name, *key), []).append((process, thread, numbers))
    lines: List[str] = []
    shown = list(groups.values())[: len(MOST)]
    most = MOST[max(len(shown), 1) - 1]
    for group in shown:
        process, thread, numbers = group[0]
        frame_owners = names_of_processes(
            diagnosis.snapshot.processes, [one.index for one, _, _ in group], style, most=16
        )
        name = " ".join(dict.fromkeys(filter(None, [clean(thread.id, style), clean(thread.name, style)])))
        title = f"{frame_owners}, thread {name}" if len(group) == 1 else frame_owners
        lines.append(style.paint(f"Source lines of {title}", "strong"))
        for number in numbers[:most]:
            lead = f"  #{thread.number_of(number)}".ljust(7)
            lines.append(
                style.paint(lead, "dim") + call_text((thread.frames[number], 1), style.width - len(lead), style)
            )
        if len(numbers) > most:
            lines.append(style.paint(f"  {style.ellipsis} {counted(len(numbers) - most, 'outer frame')}", "dim"))
    if len(groups) > len(shown):
        lines.append(style.paint(f"{style.ellipsis} {counted(len(groups) - len(shown), 'more thread')}", "dim"))
    return lines


def _decisive(diagnosis: Diagnosis) -> Iterator[Tuple[RankSnapshot, ThreadStack]]:
    """The thread that decides in each culprit, and those of culprits that the chain goes through."""
    verdict = diagnosis.verdict
    wanted: Dict[Tuple[int, str], None] = {}
    for judged in diagnosis.processes:
        if judged.index in verdict.culprits and judged.wait.thread is not None:
            wanted[judged.index, judged.wait.thread] = None
    for edge in verdict.chain:
        for node in (edge.source, edge.target):
            if node.process in verdict.culprits and node.process is not None and node.thread is not None:
                wanted[node.process, str(node.thread)] = None
    processes = {one.index: one for one in diagnosis.snapshot.processes}
    for index, id in wanted:
        process = processes.get(index)
        thread = next((one for one in process.threads if one.id == id), None) if process else None
        if process is not None and thread is not None:
            yield process, thread
