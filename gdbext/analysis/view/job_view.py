"""One common view of all processes for the patterns: who takes part, in what kind of wait, and who is not there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Pattern, Sequence, Tuple

from gdbext.analysis.stacks.decisive import decisive_thread, is_main
from gdbext.analysis.stacks.thread_kind import group_of
from gdbext.knowledge.engines.torch.groups import FROM, GROUP, LIST_OF_RANKS, NEW_GROUP, RANKS, TO
from gdbext.knowledge.engines.waits_between_parts import POLLING_LOOPS
from gdbext.knowledge.frames.python.interpreter import STARTERS
from gdbext.knowledge.runtimes.untimed_calls import FROM_ONE
from gdbext.knowledge.spinning import SPINNING_AFTER
from gdbext.model.codes import Given, ReadState
from gdbext.model.job import RANK, JobSnapshot, RankSnapshot
from gdbext.model.locks import NOT_ACCEPTED
from gdbext.model.missing import Missing
from gdbext.model.stack import Captured, Frame, ThreadStack
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import ProcessJudgement, ThreadJudgement

COMMUNICATION = ("collective", "device", "launch")
"""Groups that wait for the other ranks, or may: a launched collective makes the stream wait."""

WATCHDOG = "NCCL watchdog"  # of torch: the name its frames and its thread have in knowledge/
_SIDES = {"recv": FROM, "send": TO}
_ROOTS = {"broadcast": FROM, "scatter": FROM, "gather": TO, "reduce": TO}
_PAIRS = ("send", "recv", "send_recv")
# Endings of captured names that mean the same: `comm->commHash`, `info->comm->commHash`, ...
_HASHES = ("commHash",)
_ADDRESSES = ("comm", "nccl_comm_")
_SIZES = ("nRanks", "nranks", "world_size_")
_OPERATIONS = ("opCount",)
_COUNTS = ("count", "data_size")
_LIST = regex(LIST_OF_RANKS)
_MOST_RANKS = 1 << 20
_LOOPS = [(regex(row.loop), regex(row.looks)) for row in POLLING_LOOPS]


@dataclass(frozen=True, eq=False)
class Party:
    """One member of the job: a process with its decisive thread, or one thread where threads are the ranks.

    Two are equal that stand for the same thread. To compare all that is known of them would take as long as reading it,
    and jobs of thousands of ranks ask often.
    """

    process: RankSnapshot
    thread: Optional[ThreadStack]
    judged: ThreadJudgement
    group: str
    is_thread: bool = False
    by_group: bool = False  # its communicator goes by the name that torch gave it: no rank tells NCCL's own
    polls: bool = False  # it is in a loop that asks for requests all the time, and has none to work on

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Party) and self._who == other._who

    def __hash__(self) -> int:
        return hash(self._who)

    @property
    def _who(self) -> Tuple[int, int, bool]:
        return self.process.index, id(self.thread), self.is_thread

    @property
    def index(self) -> int:
        return self.process.index

    @property
    def id(self) -> str:
        """The thread's id as the source prints it; "" without one."""
        return self.thread.id if self.thread is not None else ""

    @property
    def calls(self) -> Sequence[Frame]:
        """The calls of its thread, the innermost first; () without one."""
        return self.thread.calls if self.thread is not None else ()

    @property
    def syscall(self) -> Optional[Sequence[int]]:
        """The system call that its thread is in, by number and arguments; None where there is none, or nobody knows."""
        return self.thread.syscall if self.thread is not None else None

    def python_calls(self) -> Iterator[Frame]:
        """The calls of Python on its stack, the innermost first."""
        return (frame for frame in self.calls if frame.language == "python")

    def is_inside(self, function: Pattern[str], file: Pattern[str]) -> bool:
        """Whether a call of such a function of such a file is on its stack."""
        return any(frame.is_in(function, file) for frame in self.calls)

    @property
    def lwp(self) -> Optional[int]:
        """What the kernel calls the thread."""
        return self.thread.lwp if self.thread is not None else None

    @property
    def kind(self) -> str:
        return self.judged.kind

    @property
    def in_collective(self) -> bool:
        """Whether the stack shows a collective of the whole communicator (send and receive are between two)."""
        return self.judged.collective is not None and self.judged.collective not in _PAIRS

    @property
    def communicator(self) -> Optional[str]:
        """What names the communicator across processes; its address does so within one process only."""
        value = self._captured(_HASHES)
        if isinstance(value, Missing):
            value = self._hash_at(self._captured(_ADDRESSES))
        if isinstance(value, Missing) and self.by_group:
            value = self.judged.captures.get(GROUP, value)
        return hex(value) if isinstance(value, int) else value if isinstance(value, str) else None

    def _hash_at(self, address: Captured) -> Captured:
        """By its memory, where the frame tells the address only."""
        found = (one.hash for one in self.process.communicators if one.readable and one.address == address)
        return next(found, Missing("not read"))

    @property
    def count(self) -> Optional[int]:
        """How many elements its collective carries."""
        value = self._captured(_COUNTS)
        return value if isinstance(value, int) else None

    @property
    def members(self) -> Optional[int]:
        """How many ranks its communicator has."""
        value = self._captured(_SIZES)
        return value if isinstance(value, int) else len(self.ranks) or None

    @cached_property
    def ranks(self) -> Tuple[int, ...]:
        """The members of the group of its call, in their order; () where that was not read."""
        value = self.judged.captures.get(RANKS)
        return tuple(map(int, value.split(","))) if isinstance(value, str) and _LIST.match(value) else ()

    @property
    def makes(self) -> Tuple[str, Tuple[int, ...]]:
        """The group that it makes: its name and members."""
        name = self.judged.captures.get(NEW_GROUP)
        return name if isinstance(name, str) else "", self.ranks

    @property
    def other_side(self) -> Optional[int]:
        """The rank that the message which it waits for comes from, or goes to."""
        return self._named(_SIDES.get(self.judged.collective or ""))

    @property
    def root(self) -> Optional[int]:
        """The rank that gives or gets the data of its collective."""
        names = _ROOTS.get(self.judged.collective or "")
        value = self.judged.captures.get("root") if names else None
        return value if isinstance(value, int) else self._named(names)

    @property
    def takes_orders(self) -> bool:
        """Whether its collective brings it the data of another rank, which may be what to do next."""
        return self.judged.collective in FROM_ONE and (self.root is None or self.root != self.process.rank)

    def _named(self, names: Optional[Tuple[str, str]]) -> Optional[int]:
        """The rank that an argument names by its number in the job, or in the group."""
        if names is None:
            return None
        value, place = map(self.judged.captures.get, names)
        if isinstance(value, int):
            return value
        return self.ranks[place] if isinstance(place, int) and 0 <= place < len(self.ranks) else None

    @property
    def operations(self) -> Optional[int]:
        """How many operations its communicator has begun."""
        value = self._captured(_OPERATIONS)
        return value if isinstance(value, int) else None

    def frame(self, number: Optional[int]) -> Optional[Frame]:
        """Frame `number` of the thread; None when there is none."""
        if number is None or self.thread is None or not 0 <= number < len(self.thread.calls):
            return None
        return self.thread.calls[number]

    def _captured(self, endings: Tuple[str, ...]) -> Captured:
        for name, value in self.judged.captures.items():
            if name.endswith(endings) and not isinstance(value, Missing):
                return value
        return Missing("not read")


@dataclass(frozen=True)
class JobView:
    """What the patterns look at."""

    snapshot: JobSnapshot
    processes: Tuple[ProcessJudgement, ...]
    parties: Tuple[Party, ...]  # those that could be judged
    unseen: Tuple[RankSnapshot, ...]  # ranks of which only helpers or nothing at all was read
    gone: Tuple[Party, ...]  # lost, dead or stopped: a subset of `parties`
    threads_as_ranks: bool = False
    moved: Tuple[int, ...] = ()  # processes that went on between two looks
    still: Tuple[int, ...] = ()  # processes that provably did nothing between two looks
    before: Tuple[JobView, ...] = ()  # the looks before this one, oldest first
    spinning_after: float = SPINNING_AFTER  # seconds at one place from which a rank that runs is named

    def of(self, *groups: str) -> List[Party]:
        """Parties in one of these groups, in process order."""
        return [party for party in self.parties if party.group in groups]

    def where(self, wanted: Callable[[Party], bool]) -> List[Party]:
        return [party for party in self.parties if wanted(party)]

    @property
    def has_two_looks(self) -> bool:
        return self.snapshot.apart is not None or bool(self.before or self.moved or self.still)

    @cached_property
    def is_held(self) -> bool:
        """Whether a gdb holds processes of it: the others cannot go on without them."""
        return any(process.given is Given.HELD for process in self.snapshot.processes)

    @property
    def watched(self) -> str:
        """When its counters were compared, in words."""
        return "before gdb stopped it" if self.is_held else "between two copies"

    @cached_property
    def given(self) -> Given:
        """What was read: LIVE for what a gdb holds too; LOG for a text without any stack."""
        sources = {process.given for process in self.snapshot.processes}
        if sources and not sources & {Given.TEXT, Given.CORE}:
            return Given.LIVE
        if Given.CORE in sources:
            return Given.CORE
        return Given.TEXT if any(process.threads for process in self.snapshot.processes) else Given.LOG

    @cached_property
    def stands_still(self) -> bool:
        """Whether two looks prove that nobody went on."""
        return bool(self.parties) and all(party.index in self.still for party in self.parties)

    def same_process(self, process: RankSnapshot) -> Optional[RankSnapshot]:
        """What this look saw of a process of another one."""
        return self._by_identity.get(process.identity)

    def same_party(self, party: Party) -> Optional[Party]:
        """What stands here for the process of a party of another look."""
        return self._parties_by_identity.get(party.process.identity)

    @cached_property
    def by_index(self) -> Dict[int, Party]:
        """What stands for each process that could be judged."""
        return {party.index: party for party in reversed(self.parties)}  # the first, where threads are ranks

    @cached_property
    def _by_identity(self) -> Dict[Tuple[object, ...], RankSnapshot]:
        return {process.identity: process for process in self.snapshot.processes}

    @cached_property
    def _parties_by_identity(self) -> Dict[Tuple[object, ...], Party]:
        return {party.process.identity: party for party in self.by_index.values()}

    @cached_property
    def complete(self) -> bool:
        """Whether every rank of the job was seen, or is known to be absent."""
        world = self.world_size
        found = {process.rank for process in self.snapshot.processes if process.rank is not None}
        return world is not None and len(found) + len(self.snapshot.absent) >= world and not self.unseen

    @cached_property
    def gaps(self) -> Tuple[int, ...]:
        """Ranks that the job must have, by the numbers of those that a text has."""
        numbers = {process.rank for process in self.snapshot.processes}
        ranks = {one for one in numbers if one is not None}
        if self.given is not Given.TEXT or len(ranks) < len(numbers) or not ranks or max(ranks) >= _MOST_RANKS:
            return ()
        return tuple(one for one in range(max(ranks)) if one not in ranks and one not in self.snapshot.absent)

    @cached_property
    def world_size(self) -> Optional[int]:
        if self.snapshot.world_size is not None:
            return self.snapshot.world_size
        return max((one.world_size for one in self.snapshot.processes if one.world_size), default=None)

    def environment(self, name: str) -> Optional[str]:
        """The value of a variable in the first process that has it."""
        return next((one.environment[name] for one in self.snapshot.processes if name in one.environment), None)


def build_view(
    snapshot: JobSnapshot,
    processes: Sequence[ProcessJudgement],
    moved: Tuple[int, ...] = (),
    still: Tuple[int, ...] = (),
    before: Tuple[JobView, ...] = (),
) -> JobView:
    """Build the view; linear in processes and threads."""
    parties: List[Party] = []
    unseen: List[RankSnapshot] = []
    for process, judged in zip(snapshot.processes, processes):
        party = _party(process, judged)
        if party is None:
            unseen.append(process)
        else:
            parties.append(party)
    if parties:  # what the ranks do says the same without a front end
        unseen = [process for process in unseen if process.role == RANK]
    parties = _with_ranks_at_rest(parties_without(parties, _parents(parties)))
    if all(party.communicator is None for party in parties):
        parties = [replace(party, by_group=True) for party in parties]
    split = _threads_as_parties(snapshot, processes)
    gone = tuple(party for party in parties if party.group in ("gone", "stopped"))
    members, apart = tuple(split or parties), tuple(unseen)
    return JobView(
        snapshot=snapshot,
        processes=tuple(processes),
        parties=members,
        unseen=apart,
        gone=gone,
        threads_as_ranks=bool(split),
        moved=moved,
        still=still,
        before=before,
    )


def _with_ranks_at_rest(parties: Sequence[Party]) -> List[Party]:
    """Of an engine whose other processes were read too: ranks that ask for requests all the time rest, and while the
    rank that hands out requests waits for some, so do those that wait for its broadcast. Whatever holds a request up
    then is none of them."""
    parties = [replace(party, polls=True) if _polls_for_requests(party) else party for party in parties]
    ranks = [party for party in parties if party.process.role == RANK]
    polling = [party for party in ranks if party.polls]
    following = [party for party in ranks if party.takes_orders and party.group == "collective" and not party.polls]
    leading = parties_without(ranks, following)
    if len(ranks) == len(parties) or not leading or any(one.group != "idle" and not one.polls for one in leading):
        return parties
    at_rest = {one.index: _at_rest(one) for one in (*following, *polling)}
    return [at_rest.get(party.index, party) for party in parties]


def _at_rest(party: Party) -> Party:
    return replace(party, judged=replace(party.judged, idle=True), group="idle")


def _polls_for_requests(party: Party) -> bool:
    """Whether its main thread ran through a loop that asks for requests, and stood at a place there that is not for a
    batch. What it calls may wait for the other ranks: then it did not run."""
    process = party.process
    main = next((thread for thread in process.threads if is_main(process, thread)), None)
    if process.role != RANK or main is None or not main.switches:
        return False
    names = [frame.function or "" for frame in main.calls if frame.language == "python"]
    for loop, looks in _LOOPS:
        at = next((number for number, name in enumerate(names) if loop.match(name)), None)
        if at is not None:
            called = next((name for name in reversed(names[:at]) if "<locals>" not in name), "")
            return not called or bool(looks.match(called))
    return False


def _parents(parties: Sequence[Party]) -> List[Party]:
    """Of a text: who waits for the end of processes that it has started, beside some that communicate. It has started
    the ranks and is none; of what was read alive the processes themselves tell."""
    if not any(party.group in COMMUNICATION for party in parties):
        return []
    return [party for party in parties if party.judged.rule in STARTERS and party.process.given is Given.TEXT]


def _party(process: RankSnapshot, judged: ProcessJudgement) -> Optional[Party]:
    gone = _gone(process)
    best = decisive_thread(process, judged.threads)
    if gone:
        nothing = ThreadJudgement(kind="exited-or-crashed")
        return Party(
            process=process,
            thread=None if best is None else process.threads[best],
            judged=nothing if best is None else judged.threads[best],
            group=gone,
        )
    if best is None:
        return None
    only = process.given is Given.LIVE and len(process.threads) == 1  # whatever started it, it does the work
    if judged.threads[best].helper is not None and not (only or _died(judged.threads[best])):
        blocked = process.given in (Given.TEXT, Given.CORE) and judged.positions_where(_wants_lock)
        if not blocked:
            return None
        best = blocked[0]
    thread = process.threads[best]
    return Party(process=process, thread=thread, judged=judged.threads[best], group=_group(judged.threads[best]))


def _died(helper: ThreadJudgement) -> bool:
    """Whether a helper is what killed its process. torch's watchdog only reports what others did."""
    return helper.kind == "exited-or-crashed" and helper.helper != WATCHDOG


def _wants_lock(helper: ThreadJudgement) -> bool:
    """Whether a helper stands at a lock that somebody else has, which is no rest."""
    return helper.rule == "os-mutex" and helper.kind == "mutex"


def _group(judged: ThreadJudgement) -> str:
    return "idle" if judged.idle else group_of(judged)


def _gone(process: RankSnapshot) -> str:
    """ "gone" for a process that is dead or cannot be reached, "stopped" for one under job control, else ""."""
    states = {thread.state for thread in process.threads}
    # A process that could not be read is not dead: somebody else may trace it, or we may lack the permission.
    unread = process.state == ReadState.LOST and not process.threads and not process.alive
    unread = unread and process.given is not Given.UNASKED
    if unread or (states and states <= {"Z", "X"}):
        return "gone"
    return "stopped" if states == {"T"} else ""


def _threads_as_parties(snapshot: JobSnapshot, processes: Sequence[ProcessJudgement]) -> List[Party]:
    """One process whose threads wait in the GPU's calls side by side: each may drive a GPU of its own."""
    if len(processes) != 1:
        return []
    process, judged = snapshot.processes[0], processes[0].threads
    waits = (*COMMUNICATION, "implicit")
    found = processes[0].positions_where(lambda one: one.helper is None and _group(one) in waits)
    members = [
        Party(
            process=process, thread=process.threads[one], judged=judged[one], group=_group(judged[one]), is_thread=True
        )
        for one in found
    ]
    return members if len(members) > 1 else []


def parties_without(parties: Iterable[Party], others: Iterable[Party]) -> List[Party]:
    """Those of `parties` that are not among the others, in their order."""
    left_out = frozenset(others)
    return [party for party in parties if party not in left_out]


def threads(view: JobView, kinds: Sequence[str] = ()) -> Iterator[Party]:
    """Every thread of every process as a party of its own; only those of these kinds if given."""
    for index in range(len(view.processes)):
        yield from threads_of(view, index, lambda one: not kinds or one.kind in kinds)


def calls_of(party: Party, outside: int = -1) -> List[str]:
    """Names of the party's frames further out than frame `outside`, innermost first."""
    if party.thread is None:
        return []
    return [frame.function or "" for frame in party.thread.calls[outside + 1 :]]


def other_ends(party: Party) -> List[Tuple[int, ...]]:
    """Who has the other end of what its thread waits for."""
    peers = (one.processes for one in party.process.peers if one.thread == party.lwp)
    return [one for one in peers if not isinstance(one, Missing)]


def waits_for_itself(party: Party) -> bool:
    """Whether its own process, and no other one, has the other ends of what its thread waits for."""
    ends = other_ends(party)
    return bool(ends) and all(set(pids) == {party.process.pid} for pids in ends)


def is_unaccepted(party: Party) -> bool:
    """Whether its thread waits on a connection that has not been accepted."""
    return any(NOT_ACCEPTED in peer.file for peer in party.process.peers if peer.thread == party.lwp)


def parties_of(view: JobView, threads: Sequence[Party]) -> List[Party]:
    """The processes of these threads, as the view has them."""
    indexes = {one.index for one in threads}
    return [party for party in view.parties if party.index in indexes]


def matches_any(pattern: Pattern[str], names: Iterable[str]) -> bool:
    return any(pattern.match(name) for name in names)


def threads_of(view: JobView, index: int, wanted: Callable[[ThreadJudgement], bool] = lambda _: True) -> List[Party]:
    """Threads of one process as parties; only those with such a judgement if given."""
    process, judged = view.snapshot.processes[index], view.processes[index]
    chosen = ((process.threads[one], judged.threads[one]) for one in judged.positions_where(wanted))
    return [
        Party(process=process, thread=thread, judged=one, group=group_of(one), is_thread=True) for thread, one in chosen
    ]


def parties_of_ranks(view: JobView, numbers: Sequence[int]) -> Tuple[Party, ...]:
    wanted = frozenset(numbers)
    return tuple(party_of(view, process) for process in view.snapshot.processes if process.rank in wanted)


def party_of(view: JobView, process: RankSnapshot) -> Party:
    """The process as a party, also where none of its stacks was read."""
    return view.by_index.get(process.index) or Party(
        process=process, thread=None, judged=ThreadJudgement(kind="unknown"), group="unknown"
    )
