"""Ranks that run while all others wait for them: at work, in a loop, or not to be told yet."""

from dataclasses import replace

import pytest
from stacks import gloo_reducing, job, rank, stack

from gdbext.analysis.verdict.judge import judge
from gdbext.analysis.view.job_view import build_view
from gdbext.model import exit_status as statuses
from gdbext.model.activity import Activity
from gdbext.model.stack import Loop

ENTRY = ("<module>@serve.py:60",)


def exit_status(found):
    return statuses.exit_status(found.hangs, found.snapshot.read)


def spinning(*frames, cpu=0.9, state="R", **fields):
    """Rank 1, in Python code of its own."""
    frames = frames or ("spin@serve.py:16", "decode@serve.py:30")
    return rank(1, stack(*frames, *ENTRY, state=state, cpu=cpu, **fields))


def waiting(number, turns=(40, 42), **fields):
    """A rank in an all_reduce that slept through the look."""
    one = gloo_reducing(number)
    main = replace(one.threads[0], **{"still": 0, "switches": 0, "turns": turns, "cpu": 0.0, **fields})
    return replace(one, threads=(main, *one.threads[1:]))


def look(at, busy=None, others=(0, 2), **fields):
    ranks = [waiting(number, **fields) for number in others]
    return job(ranks[0], busy or spinning(), *ranks[1:], apart=1.2, taken_at=1000.0 + at)


def after(*looks):
    return judge(replace(looks[-1], earlier=looks[:-1]))


def test_one_look_cannot_tell():
    found = judge(look(0))
    verdict = found.verdict
    assert (verdict.cause, verdict.confidence, verdict.culprits, verdict.finding) == ("unknown", "low", (), False)
    assert verdict.decided_by == "gdbext diagnose --samples 3 --interval 10 1000 1001 1002"
    assert verdict.decided_by in verdict.remedies[0].action
    assert (verdict.decisive_process, exit_status(found)) == (1, 3)


def test_a_rank_that_stays_at_one_place_is_named():
    last = look(24, spinning("spin@serve.py:17", "decode@serve.py:30"), turns=(46, 48))
    found = after(look(0), look(12, turns=(42, 46)), last)
    assert (found.verdict.cause, found.verdict.confidence, found.verdict.culprits) == ("missing-rank", "low", (1,))
    assert "for 25 s" in found.verdict.summary and "a long computation" in found.verdict.summary
    assert (found.verdict.decided_by, exit_status(found)) == (None, 1)


def counting(left, iterator=0x70, **fields):
    return spinning(loops=(Loop("decode", iterator, left), Loop("main", 0x90, 3)), **fields)


def test_a_loop_that_counts_down_is_no_endless_one():
    looks = [look(at, counting(left), turns=turns) for at, left, turns in ((0, 9000, (40, 42)), (20, 8000, (42, 44)))]
    found = after(*looks)
    assert (found.verdict.cause, found.verdict.confidence, exit_status(found)) == ("not-a-hang", "low", 0)
    assert "a loop in decode(): 1,000 items in 20.0 s, 8,000 are left" in found.verdict.summary
    assert "ends in 2.7 minutes" in found.verdict.summary


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (counting(9000), counting(9000)),
        (counting(9000), counting(8000, iterator=0x80)),
        (counting(9000), counting(8000, state="S", sleeps=1.0)),
    ],
    ids=["it stays", "it is another one", "it looks again and again"],
)
def test_a_loop_that_does_not_count_down_or_sleeps_proves_nothing(then, now):
    assert "loop ends in" not in after(look(0, then), look(20, now, turns=(42, 44))).verdict.summary


def test_not_before_its_time():
    assert after(look(0), look(12, turns=(42, 44))).verdict.decided_by
    assert judge(look(18), look(0), spinning_after=18.0).verdict.decided_by, "its peers had a processor in between"
    found = judge(look(18, turns=(42, 44)), look(0), spinning_after=18.0).verdict
    assert found.cause == "missing-rank"


def test_work_that_an_earlier_look_counted_is_no_endless_loop():
    counted = Activity(seconds=1.2, major_faults=4000)
    looks = (look(0), look(24, turns=(42, 44)))
    paged = replace(looks[0], processes=tuple(replace(one, activity=counted) for one in looks[0].processes))
    assert after(*looks).verdict.cause == "missing-rank"
    assert after(paged, looks[1]).verdict.cause in ("unknown", "not-a-hang")


def test_a_loop_calls_functions_too():
    called = spinning("arrived@serve.py:3", "spin@serve.py:17", "decode@serve.py:30")
    assert after(look(0), look(24, called, turns=(42, 44))).verdict.cause == "missing-rank"


def test_a_rank_that_gets_around_is_computing():
    elsewhere = spinning("other@serve.py:50", "decode@serve.py:31")
    found = after(look(0), look(24, elsewhere, turns=(42, 44)))
    assert (found.verdict.cause, found.verdict.confidence, exit_status(found)) == ("not-a-hang", "low", 0)


def test_peers_that_ran_in_between_do_not_stand():
    """They came out of one collective and are in the next: the same calls, and other counters. A debugger of somebody
    else may have stopped and resumed them once."""
    found = after(look(0), look(24, turns=(90, 92)))
    assert (found.verdict.cause, exit_status(found)) == ("not-a-hang", 0)
    found = after(look(0), look(24, turns=(44, 46)))
    assert (found.verdict.cause, exit_status(found)) == ("unknown", 3)


def test_peers_that_were_woken_went_on():
    found = judge(look(0, still=9, switches=5))
    assert (found.verdict.cause, exit_status(found)) == ("not-a-hang", 0)


def test_a_rank_that_sleeps_for_a_moment_is_not_missing_yet():
    frames = ("clock_nanosleep@libc.so.6", "time_sleep@libpython3.11.so.1.0", "late@serve.py:41", *ENTRY)

    def sleeping(seconds):
        return rank(1, stack(*frames, state="S", cpu=0.0, still=0, switches=0, sleeps=seconds))

    assert judge(look(0, sleeping(1.5))).verdict.decided_by
    for seconds in (None, 3000.0):
        found = judge(look(0, sleeping(seconds))).verdict
        assert (found.cause, found.culprits) == ("missing-rank", (1,))
    assert any("for 3,000 s more" in one.text for one in found.evidence)


def test_a_set_up_that_waits_for_a_rank_that_runs():
    stored = ("recv@libc.so.6", "store_based_barrier@torch/distributed/distributed_c10d.py:7", *ENTRY)
    others = [rank(number, stack(*stored, still=0, switches=0, cpu=0.0)) for number in (0, 2)]
    found = judge(job(others[0], spinning(), others[1], apart=1.2, taken_at=1.0)).verdict
    assert (found.cause, found.culprits) == ("unknown", ()) and found.decided_by


def test_a_rank_seen_once_is_computing():
    """Pasted text, cores: nobody looked a second time."""
    ranks = gloo_reducing(0), spinning(cpu=None), gloo_reducing(2)
    assert judge(job(*ranks)).verdict.cause == "not-a-hang"


SLEEPS = ("clock_nanosleep@libc.so.6", "time_sleep@libpython3.11.so.1.0", "train@loop.py:13", "<module>@loop.py:34")
WORKER = ("pthread_cond_wait@libc.so.6", "c10d::ProcessGroupGloo::runLoop@libtorch_cpu.so")


def stepping(number, switches=64, worker=190):
    main = stack(*SLEEPS, state="S", cpu=0.003, still=3, switches=switches)
    return rank(number, main, stack(*WORKER, id="2", name="pt_gloo_runloop", state="S", switches=worker, cpu=0.0))


@pytest.mark.parametrize(
    ("ranks", "cause", "status"),
    [
        ([stepping(0), stepping(1)], "not-a-hang", 0),
        ([stepping(0), stepping(1, switches=0)], "unknown", 3),
        ([stepping(0, worker=0), stepping(1, worker=0)], "unknown", 3),
        ([stepping(0, switches=None), stepping(1, switches=None)], "unknown", 3),
    ],
    ids=["they wake up", "one does not", "they exchange nothing", "nobody counted"],
)
def test_ranks_that_all_sleep_between_two_steps(ranks, cause, status):
    ranks = [
        replace(one, threads=tuple(replace(t, cpu=t.cpu if t.switches else 0.0) for t in one.threads)) for one in ranks
    ]
    found = judge(job(*ranks, apart=1.2))
    assert (found.verdict.cause, exit_status(found)) == (cause, status), found.verdict.summary


def test_a_rank_on_its_way_into_a_collective_of_gloo_does_not_wait_in_it():
    """Between its line of Python and the wait: no thread of Gloo works yet, and no library for GPUs is there."""
    entering = stack(
        *("Tensor::sizes@libtorch_cpu.so", "pybind11::cpp_function::dispatcher@libtorch_python.so"),
        *("all_reduce@torch/distributed/distributed_c10d.py:3240", "train@loop.py:12", "<module>@loop.py:34"),
        **{"state": "S", "cpu": 0.003, "still": 2, "switches": 60},
    )
    ranks = [
        replace(stepping(number), threads=(main, stepping(0).threads[1]))
        for number, main in enumerate(
            [
                entering,
                *(replace(stepping(0).threads[0], sleeps=0.05),) * 3,
            ]
        )
    ]
    found = judge(job(*ranks, apart=1.2))
    assert (found.verdict.cause, exit_status(found)) == ("not-a-hang", 0), found.verdict.summary
    on_gpus = [replace(one, libraries=("/opt/libnccl.so.2",)) for one in ranks]
    assert judge(job(*on_gpus, apart=1.2)).verdict.decided_by, "there the call is over when it is launched"


@pytest.mark.parametrize(
    ("napping", "cause", "confidence"),
    [(1, "unknown", "low"), (0, "missing-rank", "high"), (None, "missing-rank", "medium")],
)
def test_a_loader_whose_worker_sleeps_for_a_while_is_slow_or_stuck(napping, cause, confidence):
    polls = ("poll@libc.so.6", "get@multiprocessing/queues.py:113", "_try_get_data@torch/utils/data/dataloader.py:1131")
    loads = rank(1, stack(*polls, *ENTRY, state="S", cpu=0.0, switches=0), activity=Activity(2.0, napping=napping))
    found = judge(look(0, loads)).verdict
    assert (found.cause, found.confidence, bool(found.decided_by)) == (cause, confidence, cause == "unknown")


def test_processes_of_containers_that_share_a_host_name_and_pids_are_told_apart():
    one, two = (rank(number, stack("main@engine"), pid=7, host="worker") for number in (0, 1))
    assert one.identity != two.identity
    look = build_view(job(one, two), ())
    assert look.same_process(two) is look.snapshot.processes[1]
