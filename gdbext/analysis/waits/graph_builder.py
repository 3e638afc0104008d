"""One look at a job as a wait-for graph: every rank, what it waits for, and who would have to act."""

from __future__ import annotations

from gdbext.analysis.stacks.thread_kind import group_of
from gdbext.analysis.verdict.job_view import JobView, Party
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges import collective_waits as meeting
from gdbext.analysis.waits.edges import holding
from gdbext.analysis.waits.edges import whole_stacks as idioms
from gdbext.knowledge.causes.witnesses import KERNEL_DRIVER
from gdbext.model.text.patterns import regex

_DRIVER = regex(KERNEL_DRIVER)


def build(view: JobView) -> Drawing:
    """The drawing of the graph; linear in threads, and in ranks for each of the collectives that are told apart."""
    drawing = Drawing(view)
    for party in view.parties:
        drawing.rank(party)
    for process in view.unseen:
        drawing.process(process, "unread")
    _kernel(drawing)
    idioms.before(drawing)
    holding.draw(drawing)
    meeting.draw(drawing)
    idioms.after(drawing)
    return drawing


def _kernel(drawing: Drawing) -> None:
    """Threads that cannot be interrupted inside the kernel's GPU driver."""
    for process, judged in zip(drawing.view.snapshot.processes, drawing.view.processes):
        for thread, one in zip(process.threads, judged.threads):
            if thread.state == "D" and _DRIVER.match(thread.wchan or ""):
                own = next((party for party in drawing.view.parties if party.index == process.index), None)
                party = Party(process=process, thread=thread, judged=one, group=group_of(one), is_thread=True)
                node = drawing.rank(own) if own is not None else drawing.of(party)
                driver = drawing.resource("driver", process.index, f"the kernel's driver ({thread.wchan})", "faulted")
                drawing.join(node, driver, one.kind, "proven", drawing.fact(party))
