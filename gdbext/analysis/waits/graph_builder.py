"""One look at a job as a wait-for graph: every rank, what it waits for, and who would have to act."""

from __future__ import annotations

from gdbext.analysis.stacks.thread_kind import group_of
from gdbext.analysis.view.job_view import JobView, Party
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges import collective_waits, lock_and_join_holders, whole_stacks
from gdbext.knowledge.causes.witnesses import KERNEL_DRIVER
from gdbext.knowledge.frames.system.linux_kernel import GPU_ENDS, GPU_MODULE
from gdbext.model.codes import KERNEL_TEXT
from gdbext.model.text.patterns import regex

_DRIVER, _MODULE, _ENDS = map(regex, (KERNEL_DRIVER, GPU_MODULE, GPU_ENDS))
_SLEEPS = ("device-sync", "event-sync", "mutex", "condvar-idle", "unknown")


def build(view: JobView) -> Drawing:
    """The drawing of the graph; linear in threads, and in ranks for each of the collectives that are told apart."""
    drawing = Drawing(view)
    for party in view.parties:
        drawing.rank(party)
    for process in view.unseen:
        drawing.process(process, "unread")
    _kernel(drawing)
    whole_stacks.before_general_rules(drawing)
    lock_and_join_holders.draw(drawing)
    collective_waits.draw(drawing)
    whole_stacks.after_general_rules(drawing)
    _inside_driver(drawing)
    return drawing


def _inside_driver(drawing: Drawing) -> None:
    """Stacks of the kernel's watchdog, or of an end, that stand in a GPU driver: texts show no state of a thread."""
    for party in drawing.view.parties:
        thread = party.thread
        if thread is None or party.process.source != KERNEL_TEXT or party.kind not in _SLEEPS:
            continue
        frames = [one for one in thread.calls[party.judged.frame or 0 :] if _MODULE.match(one.module or "")]
        ends = any(_ENDS.match(one.function or "") for one in frames)
        if frames and (ends or thread.state == "D"):
            rank = drawing.rank(party)
            driver = drawing.resource(
                "driver", rank.id, f"kernel module {(frames[0].module or '').strip('[]')}", "faulted"
            )
            drawing.clear(rank)
            drawing.join(rank, driver, party.kind, "assumed", drawing.fact(party))


def _kernel(drawing: Drawing) -> None:
    """Threads that cannot be interrupted inside the kernel's GPU driver."""
    for process, judged in zip(drawing.view.snapshot.processes, drawing.view.processes):
        for thread, one in zip(process.threads, judged.threads):
            if thread.state == "D" and _DRIVER.match(thread.wchan or ""):
                own = next((party for party in drawing.view.parties if party.index == process.index), None)
                party = Party(process=process, thread=thread, judged=one, group=group_of(one), is_thread=True)
                node = drawing.rank(own) if own is not None else drawing.of(party)
                driver = drawing.resource("driver", process.index, f"kernel function {thread.wchan}", "faulted")
                drawing.join(node, driver, one.kind, "proven", drawing.fact(party))
