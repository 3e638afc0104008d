"""Ranks that may not be read: what /proc says to everybody is told, and no cause is guessed from it."""

import dataclasses

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.capture.without_stop.kernel_threads import ThreadTimes
from gdbext.collect import unreadable_ranks
from gdbext.collect.live_snapshot_source import LiveReading
from gdbext.collect.one_rank import LiveRank
from gdbext.collect.rank_locks import Neighbours
from gdbext.discovery.preflight_checks.attach_permission import Preflight, Problem
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.codes import StackEnd
from gdbext.model.exit_status import exit_status
from gdbext.model.job import RankProcess, Refusal
from gdbext.model.snapshot_files.codec import dump_snapshot, load_snapshot
from gdbext.model.stack import OUTLINE, ThreadStack
from gdbext.model.witness import Statement, Witness
from gdbext.render import Style, render
from gdbext.render.json.document import document
from gdbext.snapshot_builder.builder import rank_snapshot
from tests.unit.stacks import job, rank, syncing

REFUSAL = Refusal("1000 has capabilities that we lack (0x80000)", "start the container with --cap-add=SYS_PTRACE")
WHY = f"{REFUSAL.text}; {REFUSAL.remedy}"


def thread(lwp, state="S", cpu=0.0, name="engine", **fields):
    return ThreadStack(str(lwp), (), lwp, name, state, cpu, truncated=OUTLINE, end=StackEnd.OUTLINE, **fields)


def closed(number, *threads, **fields):
    """A rank of which only /proc speaks; two threads that sleep unless `threads` says otherwise."""
    found = threads or (thread(1000 + number), thread(2000 + number, name="pool"))
    fields.setdefault("state", "partial")
    return rank(number, *found, problems=(WHY,), refusal=REFUSAL, pause_ms=0.0, alive=True, **fields)


def said(verdict):
    return [line.text for line in verdict.evidence]


def test_nothing_is_claimed_of_ranks_that_sleep():
    found = judge(job(closed(0), closed(1), closed(2), apart=1.5))
    verdict = found.verdict
    assert (verdict.cause, verdict.confidence, verdict.culprits, verdict.victims) == ("unknown", "low", (), ())
    assert verdict.summary == "Ranks 0-2 could not be read: 1000 has capabilities that we lack (0x80000)."
    assert said(verdict) == ["all threads of ranks 0-2 sleep, and used no CPU between two samples"]
    assert verdict.remedies[0].action == "Start the container with --cap-add=SYS_PTRACE"
    assert len(verdict.remedies) == 1
    assert any("all stacks of ranks 0-2" in line for line in verdict.missing)
    assert not any("--no-stop" in line for line in verdict.missing)
    assert {one.wait.kind for one in found.processes} == {"unknown"}
    assert exit_status(found.hangs, found.snapshot.read) == 3


def test_a_main_thread_that_uses_a_processor_is_named_and_not_accused():
    busy = closed(2, thread(1002, "R", 0.98), thread(2002))
    verdict = judge(job(closed(0), closed(1), busy)).verdict
    assert (verdict.cause, verdict.culprits) == ("unknown", ())
    assert said(verdict)[0] == "the main thread of rank 2 used 98% of a core: it computes or polls"
    assert verdict.evidence[0].process == 2 and verdict.evidence[0].thread == "1002"


def test_equal_statements_are_one_line():
    busy = [closed(number, thread(1000 + number, "R", 0.9 + number / 100), thread(2000)) for number in range(64)]
    assert said(judge(job(*busy)).verdict) == [
        "the main thread of ranks 0-63 used 90% of a core or more: it computes or polls"
    ]


def test_a_thread_that_wants_a_processor_and_gets_little_does_not_sleep():
    """On a busy machine one that spins uses a fifth of a core."""
    starved = closed(1, thread(1001, "R", 0.2), thread(2001, cpu=0.01))
    verdict = judge(job(closed(0, thread(1000, cpu=0.05), thread(2000, cpu=0.1)), starved)).verdict
    assert said(verdict) == [
        "all threads of rank 0 sleep most of the time: together they used 15% of a core",
        "the main thread of rank 1 runs, or waits for a processor, and used 20% of a core",
    ]
    once = said(judge(job(closed(0, thread(1000, "R", None)), closed(1, thread(1001, cpu=None)))).verdict)
    assert once == [
        "all threads of rank 1 were asleep in the only sample",
        "the main thread of rank 0 runs, or waits for a processor",
    ]


def test_a_sleep_that_nothing_ends_is_named_with_its_place():
    stuck = closed(1, thread(1001, "D", 0.0, wchan="nfs_wait_bit_killable", switches=0), thread(2001))
    verdict = judge(job(closed(0), stuck)).verdict
    assert verdict.cause == "unknown"
    place = "in the kernel in nfs_wait_bit_killable (state D), without a break between two samples"
    assert f"the main thread of rank 1 sleeps uninterruptibly {place}" in said(verdict)
    passing = dataclasses.replace(stuck, threads=(thread(1001, "D", 0.0, switches=7),))
    assert "without a break" not in " ".join(said(judge(job(closed(0), passing)).verdict))


@pytest.mark.parametrize("others, confidence", [("asleep", "medium"), ("busy", "low"), ("seen once", "low")])
def test_a_stopped_rank_decides(others, confidence):
    cpu = {"asleep": 0.0, "busy": 0.9, "seen once": None}[others]
    stopped = closed(2, thread(1002, "T"), thread(2002, "T"))
    verdict = judge(job(closed(0, thread(1000, cpu=cpu)), closed(1), stopped)).verdict
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("missing-rank", confidence, (2,))
    assert verdict.summary.startswith("Rank 2 is stopped by a signal (state T), so no operation")
    assert "ranks 0-1 could not be read" in verdict.summary.replace("Ranks", "ranks")
    assert "rank 2 is stopped by a signal (state T)" in said(verdict)


def test_a_dead_rank_decides():
    dead = rank(1, state="lost", alive=False, problems=("it has ended (zombie)",))
    verdict = judge(job(closed(0), dead, closed(2))).verdict
    assert (verdict.cause, verdict.culprits) == ("missing-rank", (1,))
    assert verdict.summary.startswith("Rank 1 is dead, so no operation that needs it can complete. ")
    both = judge(job(closed(0), dead, closed(2, thread(1002, "T")))).verdict
    assert "(state T) and rank 1 is dead, so no operation that needs them can complete. " in both.summary


def test_one_stopped_process_is_no_missing_rank():
    verdict = judge(job(closed(0, thread(1000, "T")))).verdict
    assert (verdict.cause, verdict.culprits) == ("unknown", ())
    assert "Rank 0 is stopped by a signal" in verdict.summary


def test_a_number_without_a_process_is_told_and_not_blamed():
    """Nobody is seen to wait for it, and the user may have named only some pids."""
    verdict = judge(job(closed(0), world_size=2, absent=(1,))).verdict
    assert (verdict.cause, verdict.absent) == ("unknown", ())
    assert verdict.summary.endswith("No process of rank 1 was found.")


def test_beside_a_rank_that_was_read():
    found = judge(job(syncing(0), closed(1)))
    assert found.processes[0].wait.kind == "stream-sync"
    assert found.verdict.cause == "unknown"
    assert any("all threads of rank 1 sleep" in line for line in said(found.verdict))
    assert exit_status(found.hangs, found.snapshot.read) == 3
    alone = judge(job(syncing(0), syncing(2), closed(1))).verdict
    assert alone.culprits == () and alone.victims == (0, 1), "indexes: ranks 0 and 2"


def test_a_gpu_that_failed_is_found_without_a_stack():
    statement = Statement("Xid 79: GPU has fallen off the bus", "gpu-fault", 1)
    verdict = judge(
        job(closed(0), closed(1), witnesses=(Witness("kernel log", "present", statements=(statement,)),))
    ).verdict
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("gpu-fault", "high", (1,))


def test_names_of_threads_are_words_and_no_format():
    odd = closed(0, thread(1000), thread(2000, "R", 0.9, name="{who} {0} {x"))
    assert any("{0} {x" in line for line in said(judge(job(odd, closed(1))).verdict))


def test_json_has_states_and_the_text_fits_a_screen():
    found = judge(job(closed(0, thread(1000, "R", 0.5, wchan=None), thread(2000, wchan="futex_do_wait")), closed(1)))
    one = document(found)["processes"][0]
    assert one["state"] == "partial" and one["after"] is None
    assert [(row["state"], row["cpu"], row["wchan"]) for row in one["threads"]] == [
        ("R", 0.5, None),
        ("S", 0.0, "futex_do_wait"),
    ]
    lines = render(found, Style(100))
    assert len(lines) < 50 and "  pause    none: nothing was stopped" in lines
    assert any("--cap-add=SYS_PTRACE" in line for line in lines)


def test_a_saved_look_gives_the_same_verdict():
    snapshot = job(closed(0), closed(1, thread(1001, "T")), apart=1.5)
    again = load_snapshot(dump_snapshot(snapshot))
    assert judge(again).verdict == judge(snapshot).verdict
    earlier = [dataclasses.replace(process, refusal=None) for process in snapshot.processes]  # as it was saved once
    again = load_snapshot(dump_snapshot(job(*earlier, apart=1.5)))
    assert judge(again).verdict == judge(snapshot).verdict


# --- taking it ---


def times(tid, at, **fields):
    return ThreadTimes(tid, at, **{"state": "S", "started": 7, "cpu_ns": 0, "waited": 1, "preempted": 0, **fields})


def test_threads_of_two_looks():
    first = {5: times(5, 10.0), 6: times(6, 10.0), 8: times(8, 10.0)}
    second = {
        5: times(5, 11.0, cpu_ns=500_000_000, waited=4, wchan="futex_do_wait"),
        7: times(7, 11.0, state="D"),
        8: times(8, 11.0, state="Z"),
    }
    one, new = unreadable_ranks.stacks_of(first, second)
    assert (one.lwp, one.state, one.cpu, one.switches, one.wchan) == (5, "S", 0.5, 3, "futex_do_wait")
    assert one.unread and one.outlined and not one.frames
    assert (new.lwp, new.state, new.cpu, new.switches) == (7, "D", None, None)


def test_two_looks_that_are_too_close_say_nothing_of_processor_time():
    (one,) = unreadable_ranks.stacks_of({5: times(5, 10.0)}, {5: times(5, 10.01, cpu_ns=9_000_000)})
    assert one.cpu is None and one.switches == 0


def test_a_rank_of_threads_without_frames_is_partial():
    one = LiveRank(RankProcess(5, "rank", rank=3), stacks=unreadable_ranks.stacks_of({}, {5: times(5, 1.0)}), cut=True)
    assert rank_snapshot(0, LiveReading(one, Neighbours(ProcFS(), ()))).state == "partial"
    one.stacks = ()
    assert rank_snapshot(0, LiveReading(one, Neighbours(ProcFS(), ()))).state == "lost"


def test_a_missing_right_is_told_from_other_obstacles():
    assert Preflight(5, False, (Problem("other user", "sudo", right=True),)).barred
    assert not Preflight(5, False, (Problem("zombie", "look at its parent"),)).barred
