"""What a text tells last counts: later stops of a debugger, barriers that were passed, dumps that were asked for."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files

LOCKED = """
Thread {id} (Thread 0x7ffff5a006c0 (LWP 424{id}) "app"):
#0  0x00007ffff7c8d117 in __lll_lock_wait (futex=0x55555555804{id}, private=0) at ./nptl/lowlevellock.c:49
#1  0x00007ffff7c94002 in ___pthread_mutex_lock (mutex=0x55555555804{id}) at ./nptl/pthread_mutex_lock.c:93
#2  0x0000555555555222 in {who} () at app.c:22
"""
HIT = 'Thread 3 "app" hit Breakpoint 1, decode (step=3) at gpt.cc:66\n'
CTRL_C = '(gdb) c\nContinuing.\n^C\nThread 1 "app" received signal SIGINT, Interrupt.\n(gdb) thread apply all bt\n'
INTERRUPTED = """Traceback (most recent call last):
  File "train.py", line 88, in main
    loss = step(batch)
  File "/usr/lib/python3/torch/distributed/distributed_c10d.py", line 2500, in all_reduce
    work.wait()
"""
GO = "goroutine 1 gp=0xc0000061c0 m=nil [select]:\nmain.main()\n\t/src/main.go:12 +0x2f\n"
TAKES = """WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=77)
  Cycle in lock order graph: M1 (0x7b) => M2 (0x7c) => M1

  Mutex M2 acquired here while holding mutex M1 in main thread:
    #0 pthread_mutex_lock <null> (libtsan.so.0+0x1)
    #1 take_two /src/a.c:10 (a.out+0x1)

  Mutex M1 acquired here while holding mutex M2 in thread T1:
    #0 pthread_mutex_lock <null> (libtsan.so.0+0x1)
    #1 take_one /src/a.c:20 (a.out+0x1)
"""
WAITS = (
    "INFO Waiting in store based barrier to initialize process group for rank: {rank}, "
    "key: store_based_barrier_key:{key} (world_size={size}, worker_count={joined}, timeout=0:30:00)\n"
)
PASSED = "INFO Rank {rank}: Completed store-based barrier for key:store_based_barrier_key:{key} with {size} nodes.\n"
TIMED_OUT = (
    "[rank1]:[E ProcessGroupNCCL.cpp:474] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=15, OpType=ALLREDUCE, NumelIn=10, NumelOut=10, Timeout(ms)=600000) ran for 600123 milliseconds\n"
)


def diagnosis(text):
    return judge(parse_files([("a.txt", text.encode())]))


def test_where_a_thread_stood_at_an_earlier_breakpoint_says_nothing_of_a_later_stop():
    text = HIT + CTRL_C + LOCKED.format(id=2, who="second") + LOCKED.format(id=1, who="first")
    assert diagnosis(text).verdict.cause == "lock-order-deadlock"
    assert "decode" not in diagnosis(text).verdict.summary
    assert "decode" in diagnosis(HIT).verdict.summary  # of the last stop it does


def test_advice_for_all_processes_is_for_the_next_hang_too():
    (first, *_) = diagnosis(INTERRUPTED + "KeyboardInterrupt\n").verdict.remedies
    assert first.action.startswith("At the next hang, before you press Ctrl-C: dump every process")


def test_goroutines_that_were_asked_for_show_a_hang_and_not_why_it_ended():
    verdict = diagnosis("SIGQUIT: quit\nPC=0x46c6e1 m=0 sigcode=0\n\n" + GO).verdict
    assert "when SIGQUIT ended the process" in verdict.summary
    assert not verdict.remedies[0].action.startswith("Read the lines above")
    assert "when a process crashes" in diagnosis(GO).verdict.summary


def test_threads_of_a_lock_checker_do_not_wait():
    verdict = diagnosis(TAKES).verdict
    assert "wait for each other" not in verdict.summary
    assert "took lock M2 while it held M1, in take_two" in verdict.summary


@pytest.mark.parametrize("who", ["release_locked", "ns::Pool::flushLocked"])
def test_a_function_that_runs_with_a_lock_held_may_ask_for_another_one(who):
    text = LOCKED.format(id=2, who=who) + "#3  0x0000555555555223 in serve () at app.c:29\n"
    assert f"waits for a lock in {who} (app.c:22)" in diagnosis(text).verdict.summary


def test_nobody_waits_at_a_barrier_that_was_completed():
    waiting = "".join(WAITS.format(rank=rank, key=1, size=4, joined=rank + 1) for rank in range(2))
    passed = PASSED.format(rank=0, key=1, size=4)
    assert "ranks 2-3 have not" in diagnosis(waiting).verdict.summary
    assert diagnosis(waiting + passed + TIMED_OUT).verdict.cause == "unknown"
    assert "joined" not in diagnosis(waiting + passed + TIMED_OUT).verdict.summary
    other = PASSED.format(rank=0, key=2, size=4)
    assert "ranks 2-3 have not" in diagnosis(waiting + other).verdict.summary
    assert "ranks 2-3 have not" in diagnosis(waiting + passed + waiting).verdict.summary  # the run after that one


def test_members_are_counted_of_one_group():
    text = WAITS.format(rank=0, key=1, size=8, joined=8) + WAITS.format(rank=0, key=2, size=2, joined=1)
    assert "1 of 2 members has joined" in diagnosis(text).verdict.summary


def test_collectives_of_different_groups_are_not_compared_without_saying_so():
    line = (
        "[rank{0}]:[I x.cpp:587] [Rank {0}] Running collective: CollectiveFingerPrint(SequenceNumber={1}, OpType={2})\n"
    )
    text = line.format(0, 12, "ALLREDUCE") + line.format(1, 12, "ALLREDUCE") + line.format(0, 3, "BROADCAST")
    assert "or the numbers belong to different process groups" in diagnosis(text).verdict.summary


def test_a_fault_that_is_tried_again_is_no_first_fault():
    fault = "h:1:2 [0] transport/net_ib.cc:9 NCCL WARN NET/IB : Got completion with status 12{}\n"
    later = "h:1:2 [0] x.cc:1 NCCL WARN Mismatched collective detected, "
    later += "please check your collective calls at and around rank 1\n"
    assert diagnosis(fault.format("") + later).verdict.cause == "network-transport"
    assert diagnosis(fault.format(", retrying") + later).verdict.cause == "collective-mismatch"


def test_a_lock_of_another_interpreter_is_not_the_gil():
    text = LOCKED.format(id=2, who="{}").replace("(futex=0x555555558042", "(futex=0x555555558042 <gil_mutex>")
    assert "GIL" in diagnosis(text.format("decode")).verdict.summary
    assert "GIL" not in diagnosis(text.format("rb_thread_schedule")).verdict.summary
