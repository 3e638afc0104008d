"""The wait-for graph and the verdicts it proves, on snapshots written by hand."""

import json
import random
import time
from argparse import Namespace
from pathlib import Path

import pytest

from gdbext.analysis.locks.lock_report import report
from gdbext.analysis.verdict.judge import judge
from gdbext.analysis.view.places import place
from gdbext.cli.main import main
from gdbext.commands import locks as lock_command
from gdbext.commands.argument_parser import help_text
from gdbext.commands.declared import locks as declared
from gdbext.commands.gdb_arguments import parse
from gdbext.knowledge.labels import CAUSES
from gdbext.knowledge.runtimes.glibc_locks import HANDED_OVER, LET_GO
from gdbext.model.errors import FINDING, OK, UsageError
from gdbext.model.job import RankSnapshot
from gdbext.model.locks import KINDS, LockWait, Peer
from gdbext.model.missing import Missing
from gdbext.render import Style, render
from gdbext.render.json.document import dumps
from tests.unit.stacks import DRIVER, ENGINE, frame, inside, job, rank, reducing, stack, syncing

STYLE = Style(width=120, color=False, unicode=True)
LOCKS = ("__lll_lock_wait@libc.so.6", "pthread_mutex_lock@libc.so.6")
NOBODY = Missing("a condition variable has no owner: whoever makes the condition true wakes it")


def thread(lwp, *frames, **fields):
    return stack(
        *(frames or (*LOCKS, f"step{lwp}@engine engine.cc:{lwp}", *ENGINE[1:])), id=str(lwp), lwp=lwp, **fields
    )


def wait(lwp, owner, kind="mutex", **fields):
    return LockWait(lwp, kind, 0x1000 * lwp, owner, **fields)


def locked(number, lwps, *waits, others=(), **fields):
    """A rank whose threads `lwps` wait for locks as `waits` say."""
    return rank(number, *map(thread, lwps), *others, locks=waits, pid=lwps[0], **fields)


def verdict(*ranks, **fields):
    return judge(job(*ranks, **fields)).verdict


def rows_of(*ranks):
    return report(judge(job(*ranks))).rows


# --- circles ---


def test_two_threads_that_wait_for_each_other():
    found = verdict(locked(0, (1, 2), wait(1, 2), wait(2, 1)))
    assert (found.cause, found.confidence, found.culprits) == ("lock-order-deadlock", "high", (0,))
    assert "Two threads of rank 0 wait for each other: thread 1 waits for mutex 0x1000 that" in found.summary
    assert [(line.thread, line.process) for line in found.evidence[:2]] == [("1", 0), ("2", 0)]
    assert "0x1000" in found.evidence[0].text


def test_a_circle_of_three_and_one_that_only_joins_it():
    found = verdict(locked(0, (1, 2, 3, 4), wait(1, 2, "join"), wait(2, 3), wait(3, 4, "rwlock"), wait(4, 2)))
    assert (found.cause, found.confidence) == ("lock-order-deadlock", "high")
    assert "3 threads of rank 0 wait for each other in a circle" in found.summary
    assert "thread 1 " not in found.summary


def test_a_thread_that_waits_for_itself():
    assert "waits for mutex 0x1000, which it already holds" in verdict(locked(0, (1,), wait(1, 1))).summary


@pytest.mark.parametrize("kind", ["mutex", "driver", "loader"])
def test_a_circle_with_the_gil(kind):
    found = verdict(locked(0, (1, 2), wait(1, 2, kind), wait(2, 1, "gil")))
    assert (found.cause, found.confidence) == ("gil-deadlock", "high")
    assert "Python's GIL that thread 1 holds" in found.summary


def test_threads_that_want_the_gil_of_one_that_runs_are_no_circle():
    running = stack("_PyEval_EvalFrameDefault@python3", "work@a.py:3", id="1", lwp=1, state="R", gil=True)
    asking = (wait(2, 1, "gil"), wait(3, 1, "gil"))
    found = verdict(rank(0, running, thread(2), thread(3), pid=1, locks=asking))
    assert found.cause not in ("gil-deadlock", "lock-order-deadlock")


def test_a_circle_that_gives_up_by_itself_is_less_sure():
    assert verdict(locked(0, (1, 2), wait(1, 2, timed=True), wait(2, 1))).confidence == "medium"


def test_a_circle_that_a_second_look_did_not_find_is_none():
    moving = rows_of(locked(0, (1, 2), wait(1, 2, still=False), wait(2, 1)))
    assert [row.circle for row in moving] == [None, None]
    standing = rows_of(locked(0, (1, 2), wait(1, 2, still=True), wait(2, 1, still=True)))
    assert [row.circle for row in standing] == [0, 0]


def test_a_circle_of_a_stopped_process_is_told():
    stopped = rank(0, thread(1, state="T"), thread(2, state="T"), pid=1, locks=(wait(1, 2), wait(2, 1)))
    assert [row.circle for row in rows_of(stopped)] == [0, 0]
    assert verdict(stopped, reducing(1)).cause == "missing-rank", "who is stopped holds the others up"


def test_a_circle_over_two_processes_by_a_shared_mutex():
    for still, confidence in ((True, "high"), (None, "medium")):  # copied one after the other: once proves little
        ranks = (
            locked(0, (10,), wait(10, 20, owner_process=20, shared=True, still=still)),
            locked(1, (20,), wait(20, 10, owner_process=10, shared=True, still=still)),
        )
        found = verdict(*ranks)
        assert (found.cause, found.culprits, found.confidence) == ("lock-order-deadlock", (0, 1), confidence)
        assert "thread 20 of rank 1 holds" in found.summary


def test_the_others_that_wait_in_a_collective_are_in_the_same_story():
    found = verdict(locked(0, (1, 2), wait(1, 2), wait(2, 1)), reducing(1), reducing(2))
    assert (found.cause, found.culprits, found.victims) == ("lock-order-deadlock", (0,), (1, 2))
    assert "and rank 0 never gets there" in found.summary


def test_a_circle_beside_the_wait_that_matters_does_not_take_the_blame():
    alloc = stack(*DRIVER, "cudaMallocHost@libcudart.so.12", *ENGINE, id="7", lwp=7)
    both = rank(1, alloc, thread(1), thread(2), locks=(wait(1, 2), wait(2, 1)), pid=7)
    found = verdict(syncing(0), both, syncing(2), syncing(3))
    assert (found.cause, found.culprits) == ("implicit-sync-vs-collective", (1,))


# --- locks that nobody will release ---


def test_a_forked_child_with_its_parents_lock():
    found = verdict(locked(0, (1,), wait(1, 99, gone=True, owner_process=50)))
    assert (found.cause, found.confidence, found.culprits) == ("fork-after-cuda", "high", (0,))
    assert "for a lock that thread 99 of its parent (pid 50) held" in found.summary


def test_an_owner_that_ended():
    found = verdict(locked(0, (1, 2), wait(1, 99, gone=True)))
    assert (found.cause, found.confidence) == ("other", "high")
    assert "ended without releasing it" in found.summary
    assert verdict(locked(0, (1,), wait(1, 99, gone=True))).confidence == "medium"  # or a forked child's
    assert verdict(locked(0, (1, 2), wait(1, 99, gone=True, still=False))).cause != "other"


# --- what owners say to verdicts that stacks alone suggest ---


def test_threads_that_only_look_like_a_deadlock():
    """Two threads in locks, which stacks alone take for a possible deadlock; the holder reads a file."""
    reader = thread(3, "read@libc.so.6", "load@engine loader.cc:5")
    alone = verdict(rank(0, thread(1), thread(2), reader, pid=1))
    assert alone.cause == "lock-order-deadlock"
    proven = verdict(rank(0, thread(1), thread(2), reader, pid=1, locks=(wait(1, 3), wait(2, 3))))
    assert proven.cause not in ("lock-order-deadlock", "gil-deadlock")


def test_unknown_owners_leave_the_suspicion():
    unknown = (wait(1, Missing("the lock's memory cannot be read")), wait(2, 1))
    assert verdict(rank(0, thread(1), thread(2), pid=1, locks=unknown)).cause == "lock-order-deadlock"


def test_locks_that_change_hands_are_no_hang():
    moving = (wait(1, 2, still=False), wait(2, LET_GO, still=False))
    found = verdict(rank(0, thread(1), thread(2), pid=1, locks=moving))
    assert (found.cause, found.culprits) == ("not-a-hang", ())
    # The thread that has the lock at the moment does something with it; a rank outside of it all may be stuck.
    holder = thread(1, "clock_nanosleep@libc.so.6", "refresh@engine", "main@engine")
    assert verdict(rank(0, holder, thread(2), pid=1, locks=(wait(2, 1, still=False),))).cause == "not-a-hang"
    timed = rank(0, holder, thread(2), pid=1, locks=(wait(2, 1, still=False, timed=True),))
    assert verdict(timed).cause != "not-a-hang"  # its wait ended by itself
    apart = rank(0, holder, thread(2), thread(3), pid=1, locks=(wait(2, 3, still=False),))
    assert verdict(apart).cause != "not-a-hang"


def test_a_lock_without_an_owner_that_does_not_move_is_no_contradiction():
    frozen = (wait(1, HANDED_OVER, still=True), wait(2, HANDED_OVER, still=True))
    assert verdict(rank(0, thread(1), thread(2), pid=1, locks=frozen)).cause == "lock-order-deadlock"


def test_a_contradicted_gil_deadlock_is_less_sure():
    python = (
        "take_gil@python3",
        "PyEval_RestoreThread@python3",
        "hook@ext.so",
        "??@libcuda.so.1",
        "cuMemFree@libcuda.so.1",
    )
    threads = (thread(1, gil=True), thread(2, *python), thread(3, "read@libc.so.6", "load@engine"))
    before = verdict(rank(0, *threads, pid=1))
    after = verdict(rank(0, *threads, pid=1, locks=(wait(1, 3), wait(2, 1, "gil"))))
    assert before.cause == "gil-deadlock"
    assert before.confidence != "low"
    assert (after.cause, after.confidence) == ("gil-deadlock", "low") or after.cause != "gil-deadlock"


def test_pools_that_wait_for_work_are_no_finding():
    pool = [
        thread(n, "pthread_cond_wait@libc.so.6", "std::condition_variable::wait@libstdc++.so.6", "w@e") for n in (2, 3)
    ]
    idle = rank(0, thread(1), *pool, pid=1, locks=(wait(2, NOBODY, "condvar"), wait(3, NOBODY, "condvar")))
    found = verdict(idle)
    assert found.cause == "unknown"
    assert not found.culprits


def test_the_chain_to_whoever_waits_for_the_device_is_evidence():
    """Thread 12 waits for a mutex that thread 31 holds; thread 31 is in cudaFree."""
    free = stack(*DRIVER, "cudaFree@libcudart.so.12", *ENGINE, id="31", lwp=31)
    found = verdict(syncing(0), rank(1, thread(12), free, pid=12, locks=(wait(12, 31),)), syncing(2))
    assert found.cause == "implicit-sync-vs-collective"
    texts = [line.text for line in found.evidence]
    assert any(
        "Thread 12 waits for mutex 0xc000 that thread 31 holds; thread 31 is in cudaFree" in text for text in texts
    )


# --- other processes ---

READS = ("read@libc.so.6", "receive@engine ipc.cc:9", "main@engine main.cc:9")


def reading(number, *peers, lwp=1):
    return rank(number, thread(lwp, *READS), pid=lwp, peers=peers)


def test_a_stopped_process_at_the_other_end():
    stopped = rank(1, thread(20, *READS, state="T"), pid=20)
    found = verdict(reading(0, Peer(1, "pipe:[7]", (20,), ("T",), ("worker",))), stopped)
    assert (found.cause, found.confidence, found.culprits, found.victims) == ("missing-rank", "high", (1,), (0,))
    assert "for rank 1, which is stopped by a signal" in found.summary
    helper = verdict(reading(0, Peer(1, "tcp 127.0.0.1:1 - 127.0.0.1:2", (20,), ("T",), ("tokenizer",))))
    assert (helper.cause, helper.culprits) == ("other", ())


def test_a_peer_that_runs_or_is_not_known_is_not_blamed():
    for peer in (Peer(1, "pipe:[7]", (20,), ("S",), ("worker",)), Peer(1, "tcp", Missing("on another host"))):
        assert verdict(reading(0, peer)).cause == "unknown"


def test_a_pipe_that_only_the_reader_has_open():
    alone = Peer(1, "pipe:[7]", (1,), ("S",), ("engine",))
    found = verdict(reading(0, alone))
    assert (found.cause, found.confidence) == ("other", "medium")
    assert "no other process has it open" in found.summary
    # A thread of its own may be the writer.
    assert verdict(rank(0, thread(1, *READS), thread(2), pid=1, peers=(alone,))).cause != "other"


def test_the_peer_of_the_thread_that_holds_the_lock_counts():
    peer = Peer(2, "pipe:[7]", (20,), ("T",), ("worker",))
    holder = thread(2, *READS)
    both = rank(
        0, thread(1, "pause@libc.so.6", "main@engine"), holder, pid=1, locks=(wait(1, 2, "join"),), peers=(peer,)
    )
    assert "for pid 20 (worker), which is stopped by a signal" in verdict(both).summary


# --- bounds ---


def test_thousands_of_waits_in_a_row_and_in_a_circle():
    count = 3000
    frames = thread(1).frames
    threads = tuple(stack(*frames, id=str(lwp), lwp=lwp) for lwp in range(1, count + 1))
    for last in (Missing("unknown"), 1):
        waits = (*(wait(lwp, lwp + 1) for lwp in range(1, count)), wait(count, last))
        began = time.process_time()
        diagnosis = judge(job(RankSnapshot(0, threads, pid=1, rank=0, locks=waits)))
        assert time.process_time() - began < 10
        assert (diagnosis.verdict.cause == "lock-order-deadlock" and diagnosis.verdict.confidence == "high") == (
            last == 1
        )
        assert len(diagnosis.verdict.summary) < 4000
        assert len(render(report(diagnosis), STYLE)) < 60


def test_waits_of_threads_that_are_not_there():
    odd = (wait(1, 77), wait(88, 1), wait(2, 5, owner_process=12345))
    rows = rows_of(locked(0, (1, 2), *odd))
    assert [(row.thread, row.circle) for row in rows] == [("1", None), ("2", None)]


def test_odd_graphs_are_judged_and_shown():
    chance = random.Random(5)
    for _ in range(60):
        ranks = []
        for number in range(chance.randrange(1, 4)):
            lwps = [10 * number + position for position in range(1, chance.randrange(2, 6))]
            waits = tuple(
                LockWait(
                    lwp,
                    chance.choice(list(KINDS)),
                    chance.choice((0, chance.getrandbits(47))),
                    chance.choice([*lwps, chance.randrange(60), Missing("torn")]),
                    chance.choice((None, None, 10 * chance.randrange(4) + 1)),
                    gone=chance.random() < 0.1,
                    timed=chance.random() < 0.1,
                    still=chance.choice((None, True, False)),
                )
                for lwp in lwps
            )
            peers = (Peer(lwps[0], "pipe:[1]", chance.choice((Missing("torn"), (), (1, 11))), ("T", "S"), ("a", "b")),)
            ranks.append(rank(number, *map(thread, lwps), pid=lwps[0], locks=waits, peers=peers))
        diagnosis = judge(job(*ranks))
        made = report(diagnosis)
        assert len(made.rows) <= sum(len(one.locks) for one in ranks)
        assert all(len(line) <= STYLE.width for line in render(made, STYLE))
        assert diagnosis.verdict.cause in CAUSES
        assert json.loads(dumps(diagnosis))["verdict"]["cause"] == diagnosis.verdict.cause


# --- the report ---


def deadlocked():
    pool = thread(4, "pthread_cond_wait@libc.so.6", "work@engine")
    waits = (wait(1, 2, "join"), wait(2, 3, detail="recursive"), wait(3, 2, "rwlock"), wait(4, NOBODY, "condvar"))
    peers = (Peer(1, "pipe:[7]", (20,), ("T",), ("worker\x1b[31m",)),)
    return rank(0, *map(thread, (1, 2, 3)), pool, pid=1, locks=waits, peers=peers)


def test_the_report_tells_circles_first_and_counts_the_pools():
    made = report(judge(job(deadlocked(), locked(1, (50,), wait(50, 99, gone=True, owner_process=40)))))
    assert [row.circle for row in made.rows] == [0, 0, None, None]
    assert made.finding
    assert report(judge(job(locked(1, (50,), wait(50, 99, gone=True, owner_process=40))))).finding
    assert not report(judge(job(locked(1, (50, 51), wait(50, 51))))).finding, "to wait for a lock is no fault"
    assert made.stories[0].startswith(
        "Deadlock in rank 0: thread 2 waits for mutex 0x2000 that thread 3 holds; thread 3 waits for"
    )
    assert made.stories[1].endswith("thread 99 of its parent (pid 40) held it in the parent when the child was forked.")
    assert made.stories[2] == "Rank 0: thread 1 waits for the end of thread 2, which is part of the deadlock."
    assert made.ownerless == (("condvar", 1),)
    lines = "\n".join(render(made, STYLE))
    for text in (
        "▶ rank 0",
        "mutex (recursive)",
        "  no owner 1 on a condition variable",
        "pid 20 (worker, stopped)",
    ):
        assert text in lines
    assert "\x1b" not in lines


def test_the_report_as_a_document():
    document = json.loads(dumps(report(judge(job(deadlocked())))))
    first = document["waits"][0]
    assert (first["lwp"], first["owner"], first["circle"], first["kind"]) == (2, 3, 0, "mutex")
    assert document["ownerless"] == {"condvar": 1}
    whole = json.loads(dumps(judge(job(deadlocked()))))
    rows = whole["processes"][0]["locks"]
    assert rows[3]["owner"] is None
    assert "no owner" in rows[3]["owner_unknown"]
    assert whole["processes"][0]["peers"][0]["pids"] == [20]


def test_nothing_to_tell_is_said():
    assert "No thread was seen" in "\n".join(render(report(judge(job(inside(0, "cudaFree@libcudart.so.12")))), STYLE))


# --- texts: frames, no memory ---

FIELD = Path(__file__).parents[1] / "data" / "field"


def test_a_text_tells_who_waits_and_that_owners_are_unknown(capsys):
    assert main(["locks", "-q", str(FIELD / "lldb-two-threads-mutex-cycle.txt"), "--json"]) == FINDING
    document = json.loads(capsys.readouterr().out)
    waits = [(one["thread"], one["kind"], one["owner"], one["lwp"]) for one in document["waits"]]
    assert waits == [("1", "mutex", None, None), ("2", "mutex", None, None)]
    assert "KvCacheManager::evict" in document["waits"][0]["in"]
    assert {one["owner_unknown"] for one in document["waits"]} == {"a text shows no memory"}
    assert document["suspected"]
    assert "inferred from the stacks" in document["stories"][0]


def test_a_text_that_names_the_holder_of_the_gil_is_believed(capsys):
    main(["locks", "-q", str(FIELD / "pystack-gil-loader.txt"), "--json"])
    first, second = json.loads(capsys.readouterr().out)["waits"]
    assert (first["kind"], first["lwp"], first["owner"]) == ("gil", 5120, 5100)
    assert (second["lwp"], second["owner"]) == (5100, None)


def test_a_wait_in_a_text_alone_is_no_finding(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["locks", "-q", str(FIELD / "two-ranks-one-in-lock.txt")]) == OK
    printed = capsys.readouterr().out
    assert "Tokenizer::encode" in printed
    assert "unknown: a text shows no memory" in printed
    assert "No thread" not in printed


def test_what_nobody_holds_is_counted_in_texts_too():
    pool = thread(4, "__futex_abstimed_wait@libc.so.6", "pthread_cond_wait@libc.so.6", "work@engine")
    joining = thread(5, "__pthread_clockjoin_ex@libc.so.6", "main@engine")
    made = report(judge(job(rank(0, pool, joining, source="text:gdb"))))
    assert made.ownerless == (("condvar", 1),)
    assert [row.wait.kind for row in made.rows] == ["join"]
    assert not report(judge(job(rank(0, pool, joining)))).rows, "a live look has read the memory, and knows better"
    nothing = report(judge(job(rank(0, thread(1, "cudaFree@libcudart.so.12"), source="text:gdb"))))
    assert nothing.notes == ("No thread was seen in a wait for a lock, as far as frames tell.",)


class _Session:
    """Ranks 0 and 1, attached."""

    def ranks(self):
        return (object(),)

    def snapshot(self):
        return job(deadlocked(), locked(1, (50,), wait(50, 51)))

    def with_engine_processes(self, snapshot):
        return snapshot


def test_the_command_takes_ranks():
    (command,) = declared.COMMANDS
    assert "RANKS" in help_text(command)

    def run(line):
        return lock_command.locks(_Session(), parse(command, line))

    assert {row.process for row in run("").rows} == {0, 1}
    assert {row.process for row in run("1").rows} == {1}
    assert {row.process for row in run("0-1").rows} == {row.process for row in run("all").rows}
    for wrong in ("7", "x"):
        with pytest.raises(UsageError):
            run(wrong)
    assert isinstance(parse(command, "--json"), Namespace)


def test_every_cause_is_in_the_vocabulary():
    found = (
        verdict(locked(0, (1, 2), wait(1, 2), wait(2, 1))),
        verdict(locked(0, (1,), wait(1, 9, gone=True))),
        verdict(locked(0, (1,), wait(1, 9, gone=True, owner_process=3))),
    )
    assert {one.cause for one in found} <= set(CAUSES)


# --- sentences ---


def test_a_helper_is_not_quoted_as_the_wait_of_a_stopped_rank():
    helper = stack("poll@libc.so.6", "??@libcuda.so.1", id="2", lwp=2, name="cuda-EvtHandlr", state="T")
    found = verdict(reducing(0), rank(1, helper), reducing(2))
    assert (found.cause, found.culprits) == ("missing-rank", (1,))
    texts = [line.text for line in found.evidence if line.process == 1]
    assert texts == ["rank 1 is stopped by a signal"]


def test_the_line_of_an_inlined_call_is_no_place_of_the_function():
    assert place(frame("main@server stl_vector.h:1255")) == "main (server)"
    assert place(frame("main@server /usr/include/c++/12/bits/new:9")) == "main (server)"
    assert place(frame("std::vector<int>::at@server stl_vector.h:1255")).endswith("(stl_vector.h:1255)")
    assert place(frame("main@server basic_engine.cc:7")) == "main (basic_engine.cc:7)"


def test_the_exit_of_the_interpreter_is_no_lock():
    frames = ("PyThread_acquire_lock_timed@python3", "_shutdown@/usr/lib/python3.12/threading.py:1622")
    found = verdict(rank(0, thread(1, *frames)))
    assert "_shutdown (threading.py:1622)" in found.summary
    assert "lock" not in found.summary
