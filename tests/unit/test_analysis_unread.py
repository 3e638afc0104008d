"""Looks without a stop: nothing is said of threads that ran, and less where they may matter."""

from dataclasses import replace

import pytest

from gdbext.analysis.unread import open_stacks as unread
from gdbext.analysis.verdict.judge import judge
from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import build_view
from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.capture.copies.syscall_line import RUNNING
from gdbext.capture.without_stop.kernel_threads import ThreadTimes
from gdbext.capture.without_stop.sleeping_threads import UNKNOWN
from gdbext.cli.main import main
from gdbext.collect.one_rank import LiveRank
from gdbext.collect.unreadable_ranks import helpers_of
from gdbext.collect.unstopped_ranks import CUT, complete, merge_python_stacks
from gdbext.model.codes import StackEnd
from gdbext.model.job import RankProcess
from gdbext.model.missing import Missing
from gdbext.model.python import PythonStacks, PythonThread
from gdbext.model.stack import UNREAD, Frame, ThreadStack
from tests.unit.stacks import DRIVER, ENGINE, ENTRY, frame, inside, job, rank, stack, syncing
from tests.unit.test_analysis_communicators import Y, comm, holding

IDLE = ("pthread_cond_wait@libc.so.6", "fastertransformer::Queue::pop@engine queue.cc:7")


def ran(number, lwp=None, name="engine", state="R"):
    """A thread of rank `number` that was not read; its main thread unless `lwp` says otherwise."""
    lwp = lwp or 1000 + number
    return ThreadStack(str(lwp), (), lwp, name=name, state=state, cpu=1.0, truncated=RUNNING.reason, end=StackEnd.RAN)


def unstopped(one, *more):
    """The rank as a look without a stop sees it, with more threads."""
    threads = tuple(replace(thread, lwp=one.pid, id=str(one.pid)) for thread in one.threads) + more
    return replace(one, threads=threads, pause_ms=0.0)


def verdict(*ranks, earlier=None):
    return judge(job(*ranks), earlier).verdict


def test_the_same_verdict_where_everybody_sleeps():
    ranks = syncing(0), inside(1, "cudaMallocHost@libcudart.so.12"), syncing(2)
    stopped, without = verdict(*ranks), verdict(*map(unstopped, ranks))
    assert without.cause == "implicit-sync-vs-collective"
    for name in ("cause", "confidence", "culprits", "victims", "summary", "missing"):
        assert getattr(stopped, name) == getattr(without, name)


def test_nothing_is_said_of_a_thread_that_ran():
    one = rank(0, ran(0), stack(*IDLE, *ENTRY, id="7", lwp=7), pause_ms=0.0)
    found = judge(job(one, unstopped(syncing(1))))
    assert found.processes[0].wait.kind == "unknown"
    assert found.processes[0].wait.thread is None
    threads = {thread.id: judged for thread, judged in zip(one.threads, found.processes[0].threads)}
    assert (threads["1000"].kind, threads["1000"].running, threads["1000"].idle) == ("unknown", False, False)
    assert found.verdict.culprits == ()
    assert any("rank 0" in line and "--no-stop" in line for line in found.verdict.missing)


def test_a_helper_by_name_that_ran_is_not_called_idle_and_hides_nobody():
    helper = ran(0, 8, name="cuda-EvtHandlr")
    found = judge(job(unstopped(syncing(0), helper), unstopped(syncing(1))))
    assert found.processes[0].threads[1].kind == "unknown"
    assert found.processes[0].threads[1].helper
    assert found.processes[0].wait.kind == "stream-sync"
    assert not any("--no-stop" in line for line in found.verdict.missing)


def test_idle_threads_do_not_decide_beside_one_that_ran():
    """All that was read waits for work; the thread that works was not read: that is no idle job."""
    idle = [unstopped(rank(number, stack(*IDLE, "main@engine main.cc:9"))) for number in (0, 1)]
    assert {one.wait.kind for one in judge(job(*idle)).processes} == {"condvar-idle"}
    busy = [replace(one, threads=(*one.threads, ran(one.rank, 77, name="worker"))) for one in idle]
    found = judge(job(*busy))
    assert {one.wait.kind for one in found.processes} == {"unknown"}
    assert found.verdict.cause == "unknown"


def test_a_call_that_explains_the_standstill_decides_beside_one_that_ran():
    spins = ran(1, 77, name="worker")
    found = verdict(
        unstopped(syncing(0)), unstopped(inside(1, "cudaFree@libcudart.so.12"), spins), unstopped(syncing(2))
    )
    assert (found.cause, found.culprits) == ("implicit-sync-vs-collective", (1,))
    assert found.confidence == verdict(syncing(0), inside(1, "cudaFree@libcudart.so.12"), syncing(2)).confidence


def test_a_main_thread_elsewhere_decides_but_less_surely_beside_one_that_ran():
    away = rank(1, stack("read@libc.so.6", "loadTable@engine table.cc:5", "main@engine main.cc:9"))
    others = [syncing(0), syncing(2), syncing(3)]
    plain = verdict(*map(unstopped, [others[0], away, *others[1:]]))
    beside = verdict(unstopped(others[0]), unstopped(away, ran(1, 77, name="worker")), *map(unstopped, others[1:]))
    assert plain.cause == beside.cause == "missing-rank"
    assert ["low", "medium", "high"].index(beside.confidence) == ["low", "medium", "high"].index(plain.confidence) - 1


def test_a_stack_that_is_cut_makes_less_sure():
    cut = stack(*DRIVER, "cudaMallocHost@libcudart.so.12", *ENGINE[:1], truncated=CUT)
    ranks = [unstopped(one) for one in (syncing(0), rank(1, cut), syncing(2))]
    found = verdict(*ranks)
    assert (found.cause, found.confidence) == ("implicit-sync-vs-collective", "low")
    assert any("registers" in line and "rank 1" in line for line in found.missing)
    stopped = verdict(*[replace(one, pause_ms=1.0) for one in ranks])
    assert stopped.confidence == "medium"


def test_counts_of_ranks_that_all_ran_prove_no_order():
    ranks = [
        rank(number, ran(number), pause_ms=0.0, communicators=(comm(number, x), comm(number, y, hash=Y)))
        for number, x, y in ((0, 5, 4), (1, 4, 5), (2, 4, 5))
    ]
    found = verdict(*ranks)
    assert (found.cause, found.confidence, found.culprits) == ("unknown", "low", ())
    waiting = [holding(syncing(one.rank), *one.communicators) for one in ranks]
    assert verdict(*waiting).cause == "multi-comm-ordering"


def test_all_ranks_ran():
    ranks = [rank(number, ran(number), pause_ms=0.0) for number in range(3)]
    found = verdict(*ranks)
    assert (found.cause, found.confidence, found.culprits) == ("unknown", "low", ())
    assert found.remedies[0].action.startswith("Run again without --no-stop")
    assert not any("all ranks" in one.action for one in found.remedies)  # they were looked at, all three
    assert "missing: the main threads of ranks 0-2" in found.missing
    assert any(line.startswith("3 threads of ranks 0-2 that ran") for line in found.missing)


def test_a_rank_that_could_be_read_and_says_nothing_is_followed_by_another_look():
    puzzling = unstopped(rank(0, stack("poll@libc.so.6", "serve@engine serve.cc:1")), ran(0, 77, name="worker"))
    found = verdict(puzzling, rank(1, ran(1), pause_ms=0.0))
    assert found.cause == "unknown"
    assert found.remedies[0].action.startswith("Run again without --no-stop")


def test_who_was_read_is_named_where_only_memory_tells():
    """No stack of them was read, and their communicators were."""
    ranks = [
        rank(number, ran(number), pause_ms=0.0, communicators=(comm(number, count, size=3),))
        for number, count in ((0, 5), (1, 4), (2, 5))
    ]
    (line,) = [one.text for one in verdict(*ranks).evidence if one.text.startswith("communicator")]
    assert "(3 ranks, read in ranks 0-2): " in line


@pytest.mark.parametrize("first, second", [("ran", "read"), ("read", "ran"), ("ran", "ran")])
def test_a_rank_that_was_read_once_of_two_looks_did_not_go_on(first, second):
    """A wait that polls is caught asleep by one look and running by the next: that is no progress."""

    def take(how):
        return job(*[unstopped(syncing(n)) if how == "read" else rank(n, ran(n), pause_ms=0.0) for n in (0, 1)])

    found = judge(take(second), take(first)).verdict
    assert found.cause != "not-a-hang"
    assert "went on" not in found.summary


# --- completing the stacks of a rank ---


def looked_at(stacks, threads, times=()):
    one = LiveRank(RankProcess(5, "rank", rank=3))
    one.copy = ProcessCopy(5, threads)
    one.stacks = stacks
    one.times = {item.tid: item for item in times}
    complete(one)
    return one


def test_threads_that_were_not_read_are_there_and_say_why():
    read, unread = ThreadCopy(5, (1, 2, 3)), ThreadCopy(6, problem=RUNNING.reason, ran=True)
    one = looked_at(
        (stack("poll@libc.so.6", id="5", lwp=5),), (read, unread), (ThreadTimes(5, 0.0, "R"), ThreadTimes(6, 0.0, "R"))
    )
    assert [(thread.lwp, thread.truncated, thread.unread) for thread in one.stacks] == [
        (5, None, False),
        (6, RUNNING.reason, True),
    ]
    assert one.cut and one.problems == [f"1 of 2 threads ran: {UNREAD}"]
    assert (one.times[5].state, one.times[6].state) == ("S", "R")


def test_a_stack_that_needs_an_unknown_register_says_so():
    one = looked_at(
        (stack("poll@libc.so.6", id="5", lwp=5, truncated="memory error while unwinding", end=StackEnd.MEMORY),),
        (ThreadCopy(5, (1,)),),
    )
    assert one.stacks[0].truncated == CUT
    assert one.cut


def test_values_out_of_unknown_registers_are_not_shown():
    known = {"comm": 0x7F00, "count": UNKNOWN, "rank": UNKNOWN & 0xFFFFFFFF, "name": "x", "size": Missing("no")}
    one = looked_at(
        (ThreadStack("5", (Frame("ncclAllReduce", captures=known), frame("main@engine")), 5),), (ThreadCopy(5, (1,)),)
    )
    shown = one.stacks[0].frames[0].captures
    assert shown["comm"] == 0x7F00 and shown["name"] == "x" and shown["size"] == Missing("no")
    assert isinstance(shown["count"], Missing) and shown["count"] == shown["rank"]
    assert not one.cut


def test_python_stacks_of_several_moments():
    def python(*tids, problems=()):
        return PythonStacks("3.11", {tid: PythonThread(((Frame(f"f{tid}"),),)) for tid in tids}, problems)

    first = merge_python_stacks(None, python(1, 2, 3, problems=("a",)), frozenset({1}))
    both = merge_python_stacks(first, python(1, 2, 3, problems=("a", "b")), frozenset({2}))
    assert sorted(both.threads) == [1, 2]
    assert both.problems == ("a", "b")


def test_two_ways_of_looking_that_exclude_each_other(capsys):
    assert main(["diagnose", "--no-stop", "--together", "1"]) == 2
    assert "--no-stop" in capsys.readouterr().err


class _Counted(tuple):
    """A tuple that counts what is taken out of it one by one."""

    taken = 0

    def __iter__(self):
        for one in super().__iter__():
            self.taken += 1
            yield one


def test_very_many_processes_are_gone_through_a_few_times_and_not_once_for_each():
    diagnosis = judge(job(*(rank(number, stack(*IDLE)) for number in range(300))))
    view = build_view(diagnosis.snapshot, diagnosis.processes)
    view = replace(view, processes=_Counted(view.processes))
    unread.less_sure(view, Candidate("unknown", "low", 0, "", view.parties, (), ()))
    assert view.processes.taken <= 10 * 300


def test_without_gdb_the_names_of_gloos_threads_tell_the_backend_of_a_collective():
    """Python's frames alone say `all_reduce`; the name of a thread without any may say whose it is."""
    times = {
        tid: ThreadTimes(tid=tid, at=1.0, state="S", name=name)
        for tid, name in ((1000, "python"), (1001, "pt_gloo_runloop"), (1002, "mine"))
    }
    named = helpers_of(times, (1000,))
    assert [one.id for one in named] == ["1001"]
    calls = "all_reduce@/v/torch/distributed/distributed_c10d.py:9", "main@train.py:3"
    alone = job(rank(0, stack(*calls, id="1000", lwp=1000)))
    beside = job(rank(0, stack(*calls, id="1000", lwp=1000), *named))
    assert [judge(one).processes[0].wait.kind for one in (alone, beside)] == ["nccl-group-launch", "gloo"]
