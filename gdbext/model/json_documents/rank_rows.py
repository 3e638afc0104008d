"""Documents of jobs and their ranks: found, attached, with their stacks, communicators and breakpoints."""

from __future__ import annotations

from typing import List, Mapping, NamedTuple, Optional, Sequence, Tuple

from gdbext.model.attached_ranks import AttachedRank, RankOutput, RankOutputs, RankTable
from gdbext.model.backtrace import Backtrace, FileLine, PythonPlace, PythonVariable
from gdbext.model.communicator import Communicator, CommunicatorGroup, Member
from gdbext.model.communicator_table import CommunicatorTable
from gdbext.model.job import Job, RankProcess
from gdbext.model.json_documents.document_row import Rows, computed, nested, reasons, rows
from gdbext.model.look_origin import Origin
from gdbext.model.rank_breakpoints import BreakTable
from gdbext.model.stack import Frame
from gdbext.model.stack_tree import StackTree, TreeNode


class NumberedFrame(NamedTuple):
    """A frame with gdb's number of it, or, of a frame of Python, its number there and its local variables."""

    number: Optional[int]
    python_number: Optional[int]
    variables: Sequence[PythonVariable]
    frame: Frame


class FlatNode(NamedTuple):
    """A call of the tree, in a flat list, callers before callees, each naming its caller: recursion of any depth stays
    readable to parsers."""

    id: int
    caller: Optional[int]
    call: TreeNode


class SeenMember(NamedTuple):
    """One rank's end of a communicator."""

    member: Member
    process_rank: Optional[int]


class SeenCommunicator(NamedTuple):
    """One communicator seen from all of its ranks."""

    group: CommunicatorGroup
    members: Sequence[SeenMember]


def _flat(tree: StackTree) -> Sequence[FlatNode]:
    return _nodes(tree.roots)


def _flat_tasks(tree: StackTree) -> Sequence[FlatNode]:
    return _nodes(tree.tasks)


def _nodes(roots: Sequence[TreeNode]) -> Sequence[FlatNode]:
    nodes: List[FlatNode] = []
    todo: List[Tuple[Optional[int], TreeNode]] = [(None, root) for root in reversed(roots)]
    while todo:
        caller, node = todo.pop()
        todo.extend((len(nodes), child) for child in reversed(node.children))
        nodes.append(FlatNode(len(nodes), caller, node))
    return nodes


def _numbered(one: Backtrace) -> Sequence[NumberedFrame]:
    variables = dict(enumerate(one.variables))
    return [
        NumberedFrame(number, python, variables.get(python if python is not None else -1, ()), frame)
        for number, python, frame in zip(one.numbers, one.python_numbers, one.thread.frames)
    ]


def _problems(one: Backtrace) -> Sequence[str]:
    return [*one.thread.problems, *one.problems]


def _seen(answer: CommunicatorTable) -> Sequence[SeenCommunicator]:
    ranks = {process.index: process.rank for process in answer.processes}
    return [
        SeenCommunicator(group, [SeenMember(member, ranks[member.process]) for member in group.members])
        for group in answer.groups
    ]


_READ = "rank local_rank device bus_id init_state async_error aborted destroyed revoked finalized counts"

ROWS: Mapping[type, Rows] = {
    Job: rows("job=key engine world_size absent ranks others notes"),
    RankProcess: rows("pid role engine title rank local_rank world_size rank_source device host threads state labels"),
    RankTable: rows("ranks absent notes"),
    AttachedRank: rows("inferior=number current state attach_ms held_ms problem process"),
    RankOutputs: rows("command outputs"),
    RankOutput: rows("rank=process.rank pid=process.pid inferior=number text:lines error:lines"),
    Origin: rows("files taken_at hosts"),
    StackTree: rows("counts", computed("nodes", _flat), "folded", computed("tasks", _flat_tasks)),
    FlatNode: rows(
        "id caller function=call.function module=call.module file=call.file line=call.line language=call.language",
        "ranks=call.ranks threads=call.threads",
    ),
    Frame: rows("function module module_offset pc file line language inlined"),
    Backtrace: rows(
        "pid rank id=thread.id lwp=thread.lwp name=thread.name state=thread.state gil=thread.gil",
        "truncated=thread.truncated",
        computed("problems", _problems),
        computed("frames", _numbered),
        "left_out",
    ),
    NumberedFrame: rows("number python_number variables **frame"),
    PythonVariable: rows("name value"),
    FileLine: rows("number text"),
    PythonPlace: rows("thread number frames function file line source source_problem"),
    BreakTable: rows("breakpoints=points ranks=places notes"),
    CommunicatorTable: rows(
        computed("communicators", _seen),
        nested(
            "unreadable",
            "process address=communicator.address:hex origin=communicator.origin problem=communicator.problem",
            of="unreadable",
        ),
        nested("processes", "index rank pid host state problems notes=communicator_notes", of="processes"),
        "notes",
    ),
    SeenCommunicator: rows(
        "hash=group.name size=group.n_ranks unseen_ranks=group.unseen in_use=group.moving uneven=group.uneven members"
    ),
    SeenMember: rows("process=member.process process_rank **member.communicator"),
    Communicator: rows("address:hex origin layout moved", _READ, reasons("unread", _READ)),
}
