"""Waits that names and arguments tell apart: collectives of one's own, ends of contexts, joined threads."""

import re
from dataclasses import replace

import pytest

from gdbext.analysis.causes.log_quotes import excerpt
from gdbext.analysis.logs.lines_of_logs import Line
from gdbext.analysis.verdict.judge import judge
from gdbext.knowledge.log_lines import LOG_RULES
from gdbext.model.activity import Activity, Child
from gdbext.model.locks import LockWait, Peer
from gdbext.model.missing import Missing
from gdbext.parsers.assemble.texts_to_snapshot import parse_files
from tests.unit.stacks import gloo_reducing, job, rank, stack
from tests.unit.test_analysis_at_work import FUTEX, MAIN, live, process
from tests.unit.test_analysis_own_hangs import over_time

NAP = (230, 1, 1, 1, 0, 0, 0)
WAITS = ("futex_wait@libc.so.6", "PyThread_acquire_lock_timed@python3", "Condition.wait@threading.py:327")
CYCLES = stack("clock_nanosleep@libc.so.6", "time_sleep@python3", "Reducer.cycle@reducer.py:20",
               "Thread.run@threading.py:1", syscall=NAP, sleeps=0.005, state="S", switches=90, cpu=0.2)  # fmt: skip


def reduces(number, *, line=9, function="Reducer.allreduce", switches=0, **fields):
    main = stack(*WAITS, f"{function}@reducer.py:53", f"train@train.py:{line}", *MAIN, syscall=FUTEX, state="S",
                 switches=switches, turns=(5, 5), **fields)  # fmt: skip
    return process(number, main, replace(CYCLES, turns=(5, 900)))


def test_ranks_that_all_wait_for_threads_of_their_own_to_reduce_ask_for_different_things():
    found = over_time(reduces(0), reduces(1, line=12), reduces(2))
    assert (found.cause, found.confidence, found.culprits) == ("collective-mismatch", "low", (1,))
    assert "Pid 101 asked for it elsewhere: in train (train.py:12)." in found.summary
    assert "Most likely the ranks asked for different operations." in found.summary
    same = over_time(reduces(0), reduces(1))
    assert (same.cause, same.culprits) == ("collective-mismatch", ())
    assert "different operations" not in same.summary


@pytest.mark.parametrize(
    ("ends", "line", "cause"),
    [
        ((101,), 9, "collective-mismatch"),
        ((999,), 9, "unknown"),
        (Missing("another host"), 9, "unknown"),
        ((999,), 12, "collective-mismatch"),
    ],
    ids=["a rank", "a server", "unknown", "a server, asked for different things"],
)
def test_ranks_that_ask_for_the_same_may_wait_for_a_server(ends, line, cause):
    peer = Peer(110, "tcp 127.0.0.1:1 - 127.0.0.1:2", ends, ("S",), ("python",))
    found = over_time(replace(reduces(0), peers=(peer,)), reduces(1, line=line))
    assert (found.cause, found.finding) == (cause, cause != "unknown")


def test_of_two_ranks_that_ask_for_different_things_both_places_are_told():
    found = over_time(reduces(0), reduces(1, line=12, function="Reducer.allgather"))
    assert found.culprits == ()
    assert "Reducer.allreduce (reducer.py:53, pid 100) and Reducer.allgather (reducer.py:53, pid 101)" in found.summary
    assert "Pid 100 asked in train (train.py:9). Pid 101 asked in train (train.py:12)." in found.summary


def test_ranks_whose_own_threads_compute_may_be_slow():
    computes = stack("gemm@libext.so", "Reducer.cycle@reducer.py:20", "Thread.run@threading.py:1", state="R", cpu=0.9)
    one = reduces(0)
    busy = replace(one, threads=(*one.threads, replace(computes, id="109", lwp=109, turns=(5, 900))))
    found = over_time(busy, reduces(1))
    assert (found.cause, found.finding) == ("unknown", False)


@pytest.mark.parametrize(
    ("jobs", "seconds"),
    [
        ((reduces(0), reduces(1)), 5.0),
        ((reduces(0), reduces(1, switches=3)), 21.0),
        ((reduces(0, function="Loader.take"), reduces(1)), 21.0),
    ],
    ids=["not for long", "one was woken", "one waits for something else"],
)
def test_a_reduction_that_may_go_on_is_no_hang(jobs, seconds):
    assert not over_time(*jobs, seconds=seconds).finding


GETS = ("futex_wait@libc.so.6", "ray::core::GetRequest::Wait@_raylet.so", "get@ray/_private/worker.py:2600")


def asks_ray(number, **fields):
    more = {"syscall": FUTEX, "state": "S", "switches": 0, **fields}
    return process(number, stack(*GETS, f"task_{number}@engine.py:8", *MAIN, **more))


def test_tasks_of_ray_that_all_wait_for_tasks_are_stuck_after_some_time():
    found = over_time(asks_ray(0), asks_ray(1))
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", (0, 1))
    early = over_time(asks_ray(0), asks_ray(1), seconds=5.0)
    assert (early.cause, early.finding) == ("unknown", False)
    in_task = ("actor_method_executor@ray/_private/function_manager.py:690", *MAIN)
    inside = process(1, stack(*GETS, "fit@engine.py:8", *in_task, syscall=FUTEX, state="S", switches=0))
    blamed = over_time(asks_ray(0), inside)
    assert (blamed.cause, blamed.culprits, blamed.victims) == ("other", (1,), (0,)), "the driver is in no task"
    computes = process(1, stack("gemm@libext.so", "task_1@engine.py:8", *MAIN, state="R", cpu=0.9, switches=50))
    assert not over_time(asks_ray(0), computes).finding


TERM = ("poll@libc.so.6", "zmq_ctx_term@libzmq.so.5", "Context.term@zmq/sugar/context.py:9", "close@client.py:8")


def test_the_end_of_a_context_waits_for_its_sockets():
    one = process(0, stack(*TERM, *MAIN, syscall=(7, 1, 1, 0xFFFFFFFF, 0, 0, 0), state="S", switches=0))
    found = over_time(one)
    assert (found.cause, found.confidence) == ("destructor-or-teardown", "low")
    assert "until all sockets of that context are closed" in found.summary
    assert "linger=0" in found.remedies[0].action
    assert not over_time(one, seconds=5.0).finding


def test_a_forked_child_waits_for_the_pool_of_its_parent_in_code_without_names():
    pool = [stack("??@libgomp.so.1", "start_thread@libc.so.6", syscall=FUTEX, switches=0, state="S")] * 2
    waits = stack("wait4@libc.so.6", "main@engine", syscall=(61, 101, 0, 0, 0, 0, 0), switches=0, state="S")
    child = stack("??@libgomp.so.1", "multiply@engine", "main@engine", syscall=FUTEX, switches=0, state="S")
    peer = Peer(100, "pid 101", (101,), ("S",), ("engine",))
    lock = LockWait(101, "futex", 0x10, Missing("none"), still=True)
    parent = replace(process(0, waits, *pool, peers=(peer,)), title="engine")
    found = judge(live(parent, replace(process(1, child, locks=(lock,)), title="engine"))).verdict
    assert (found.cause, found.culprits) == ("fork-after-cuda", (1,))


@pytest.mark.parametrize(
    ("file", "cpu", "cause", "confidence"),
    [("pool.py:861", 0.5, "not-a-hang", "medium"), ("pool.py:861", 0.0, "missing-rank", "high"),
     ("queues.py:99", 0.5, "missing-rank", "medium")],
)  # fmt: skip
def test_a_rank_whose_children_work_is_slow_or_not_surely_missing(file, cpu, cause, confidence):
    waits = ("futex_wait@libc.so.6", "PyThread_acquire_lock_timed@python3", f"get@multiprocessing/{file}")
    busy = Activity(1.0, children=(Child("python", 200, cpu),))
    away = rank(1, stack(*waits, "tokenize@data.py:9", *MAIN, syscall=FUTEX, switches=0, state="S"), activity=busy)
    found = judge(job(gloo_reducing(0), away, gloo_reducing(2), apart=0.5)).verdict
    assert (found.cause, found.confidence) == (cause, confidence)
    assert ("pid 200 (python), used 50% of a core" in found.summary) == (cause == "missing-rank" and cpu > 0)


JOIN = """Thread 1 (Thread 0x7ffff7d8a740 (LWP 100) "serve"):
#0  0x00007ffff7cab624 in __pthread_clockjoin_ex (threadid=140736431548992, thread_return=0x0) at join.c:105
#1  0x00007ffff550ac4b in Engine::{function} (this=0x5) at engine.cpp:88
#2  0x00007ffff550ac4b in main () at serve.cpp:10

Thread 2 (Thread {pthread} (LWP 101) "worker"):
#0  0x00007ffff7ca63fe in read () at ../sysdeps/unix/syscall.S:81
#1  0x00007ffff550ac4b in Engine::loop (this=0x5) at engine.cpp:40

Thread 3 (Thread 0x7fffc0825a40 (LWP 102) "watcher"):
#0  0x00007ffff7ca63fe in read () at ../sysdeps/unix/syscall.S:81
#1  0x00007ffff550ac4b in Engine::watch (this=0x5) at engine.cpp:44
"""


def of_text(text):
    return judge(parse_files([("dump.txt", text.encode())])).verdict


@pytest.mark.parametrize(("function", "cause"), [("run_all", "unknown"), ("shutdown", "destructor-or-teardown")])
def test_a_text_tells_which_thread_is_joined(function, cause):
    found = of_text(JOIN.format(function=function, pthread="0x7fffc1026a40"))
    assert found.cause == cause
    assert "That is thread 2 (worker), in Engine::loop (engine.cpp:40)." in found.summary


def test_a_thread_that_is_not_in_the_text_is_not_named():
    found = of_text(JOIN.format(function="run_all", pthread="0x7fffc1026000"))
    assert "The text does not show which thread that is." in found.summary


QUEUE = """Thread 100 (idle): "MainThread"
    wait (threading.py:320)
    {call} (queue.py:171)
    submit (engine.py:40)
    <module> (serve.py:12)
Thread 120 (idle): "consumer"
    fetch (client.py:12)
    run (threading.py:953)
"""


@pytest.mark.parametrize(
    ("call", "does"),
    [("get", "waits for an item in a queue of its own process"),
     ("put", "waits for room in a queue of its own process"),
     ("join", "waits until all items of a queue of its own process are done")],
)  # fmt: skip
def test_a_queue_of_threads_is_no_other_process(call, does):
    found = of_text(QUEUE.format(call=call))
    assert does in found.summary
    assert "The only other thread in the text is thread 120 (consumer), in fetch (client.py:12)." in found.summary
    assert not any("every process" in one.action for one in found.remedies)


def test_a_long_line_is_quoted_with_its_end():
    rule = next(one for one in LOG_RULES if re.search(one.pattern, "Detected mismatch between collectives on ranks"))
    text = (
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
        f"CollectiveFingerPrint(ALLGATHER, {'TensorShape=[6], ' * 20}), but Rank 0 is running collective: BARRIER"
    )
    assert excerpt(Line(text, None, rule)).endswith(', but Rank 0 is running collective: BARRIER"')


BROKEN = """Thread 1 (Thread 0x7ffff7d8a740 (LWP 100) "solve"):
#0  __lll_lock_wait_private (futex=0x7f903e21fb80 <main_arena>) at lowlevellock.c:35
#1  0x00007f903e0cd32b in __GI___libc_malloc (bytes=472) at malloc.c:3064
#2  0x00007f8fc52d3e79 in Trace::print (s=6) at trace.cpp:92
#3  <signal handler called>
{failed}
#9  0x00007f903e0cb0b4 in _int_malloc (av=0x7f903e21fb80 <main_arena>, bytes=344) at malloc.c:3736
#10 0x00007f903e0cb0b4 in main () at solve.cpp:12
"""
ABORTS = """#4  __GI_raise (sig=6) at raise.c:50
#5  0x00007f903e055859 in __GI_abort () at abort.c:79
#6  0x00007f903e0c82fc in malloc_printerr (str=0x7f903e1dca50) at malloc.c:5347"""


@pytest.mark.parametrize("failed", [ABORTS, "#8  0x1 in _int_malloc_x () at malloc.c:1"], ids=["it failed", "a timer"])
def test_a_handler_that_deadlocks_while_the_process_fails_is_not_the_whole_answer(failed):
    found = of_text(BROKEN.format(failed=failed))
    assert found.cause == "lock-order-deadlock"
    said = "The handler ran because the process was failing already, in malloc_printerr (malloc.c:5347)."
    assert (said in found.summary) == (failed == ABORTS)


HELPER = """Thread 121 (idle): "QueueFeederThread"
    wait (threading.py:320)
    _feed (multiprocessing/queues.py:231)
"""


def test_of_other_threads_helpers_of_libraries_do_not_count():
    said = "The only other thread in the text, apart from helpers of libraries, is thread 120 (consumer)"
    assert said in of_text(QUEUE.format(call="get") + HELPER).summary


@pytest.mark.parametrize(("function", "count"), [("__pthread_clockjoin_ex", 1), ("__pthread_kill_implementation", 0)])
def test_the_thread_that_a_call_names_is_joined_by_joins_alone(function, count):
    text = JOIN.format(function="run_all", pthread="0x7fffc1026a40").replace("__pthread_clockjoin_ex", function)
    (process,) = parse_files([("dump.txt", text.encode())]).processes
    assert len(process.locks) == count


READY = "Stalled ops: conv_1 [ready ranks: 5, 6, 3, 1, 4, 0]\n"


@pytest.mark.parametrize(
    ("text", "culprits"),
    [
        (READY, (2,)),
        (READY.replace(" 3,", "").replace(" 1,", "").replace(" 4,", ""), ()),
        (READY.replace("6", "2"), ()),
    ],
    ids=["one of seven", "most of them", "none below the highest"],
)
def test_who_is_not_among_the_ready_ranks_is_named(text, culprits):
    answer = judge(parse_files([("log", text.encode())]))
    named = [answer.snapshot.processes[index].rank for index in answer.verdict.culprits]
    assert tuple(named) == culprits
    assert ("rank 2 has not submitted it" in answer.verdict.summary) == bool(culprits)


@pytest.mark.parametrize("size", [80, 1000])
def test_a_list_of_many_ready_ranks_is_read_to_its_end(size):
    listed = ", ".join(str(rank) for rank in range(size) if rank != 70)
    answer = judge(parse_files([("log", f"Stalled ops: conv_1 [ready ranks: {listed}]\n".encode())]))
    assert [answer.snapshot.processes[index].rank for index in answer.verdict.culprits] == [70]
    assert "rank 70 has not submitted it" in answer.verdict.summary
    waiting = {answer.snapshot.processes[index].rank for index in answer.verdict.victims}
    assert waiting == set(range(size)) - {70}


def test_a_stack_of_torch_that_was_escaped_for_markdown_is_read():
    frame = "frame \\#0: c10::Error::Error() + 0x57 (0x7f in /a/libc10.so)"
    text = f"Exception raised from f at a.cpp:1 (most recent call first):\n{frame}\n"
    (process,) = parse_files([("log", text.encode())]).processes
    assert [frame.function for frame in process.threads[0].frames] == ["c10::Error::Error"]


ONCE = ("futex_wait@libc.so.6", "__pthread_once_slow@libc.so.6", "std::call_once@engine", "on_failure@engine")
RUNS = ("dump@engine", "std::__invoke@engine", "__pthread_once_slow@libc.so.6", "std::call_once@engine")


def once(*frames, **fields):
    return stack(*frames, *MAIN, syscall=FUTEX, state="S", switches=0, **fields)


def test_who_runs_the_initialiser_that_others_wait_for_is_named():
    lock = LockWait(100, "once", 0x10, Missing("none"), still=True)
    itself = process(0, once(*ONCE, "__restore_rt@libc.so.6", *RUNS), locks=(lock,))
    found = judge(live(itself)).verdict
    assert (found.cause, found.summary.split(":")[0]) == ("lock-order-deadlock", "Self-deadlock in pid 100")
    assert found.remedies[0].action.startswith("Do not allocate memory, take locks or write logs in a signal handler")
    needs = LockWait(110, "mutex", 0x20, 100, still=True)
    crossed = process(0, once(*ONCE), once("lll_lock_wait@libc.so.6", "pthread_mutex_lock@libc.so.6", *RUNS),
                      locks=(lock, needs))  # fmt: skip
    found = judge(live(crossed)).verdict
    assert (found.cause, found.summary.split(":")[0]) == (
        "lock-order-deadlock",
        "Two threads of pid 100 wait for each other",
    )


@pytest.mark.parametrize(("cpu", "own", "cause"), [(0.5, 1 << 26, "not-a-hang"), (0.0, 0, "missing-rank")])
def test_a_rank_that_asks_for_the_gil_while_it_writes_is_slow(cpu, own, cause):
    asks = stack("take_gil@python3", "PyEval_RestoreThread@python3", "save@train.py:9", *MAIN, state="D", switches=99,
                 cpu=cpu)  # fmt: skip
    wrote = Activity(1.0, written_bytes=own, own_bytes=own)
    found = judge(job(gloo_reducing(0), rank(1, asks, activity=wrote), gloo_reducing(2), apart=0.5)).verdict
    assert found.cause == cause


THROWN = """  what():  [PG ID 2 PG GUID 3 Rank 2] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.

Exception raised from c10_cuda_check_implementation at /pytorch/c10/cuda/CUDAException.cpp:43 (most recent call first):
frame #0: c10::Error::Error() + 0x98 (0x7f481eabd5e8 in /a/libc10.so)
"""  # noqa: E501


def test_a_stack_of_torch_is_of_the_rank_whose_exception_it_is():
    other = "(VllmWorker rank=0 pid=223) ERROR 06-26 04:10:17 [multiproc_executor.py:527] CUDA error\n"
    answer = judge(parse_files([("log", (other + THROWN).encode())]))
    stacks = {process.rank: len(process.threads) for process in answer.snapshot.processes}
    assert stacks[2] == 1 and not stacks.get(0)
    assert [answer.snapshot.processes[index].rank for index in answer.verdict.culprits] == [2]


def test_a_stack_of_torch_behind_another_stack_is_not_of_the_rank_that_was_named_before_that():
    said, raised = THROWN.split("\n\n")
    between = 'Thread 7 (Thread 0x7f0000000000 (LWP 107) "worker"):\n#0  0x0000000000000001 in read () from libc.so.6\n'
    processes = parse_files([("log", f"{said}\n\n{between}\n{raised}".encode())]).processes
    assert not any(process.rank == 2 and process.threads for process in processes)


CONNECTS = ("clock_nanosleep@libc.so.6", "c10d::detail::SocketConnectOp::tryConnect@libtorch_cpu.so",
            "c10d::detail::TCPClient::connect@libtorch_cpu.so")  # fmt: skip
SETS_UP = ("c10d::TCPStore::TCPStore@libtorch_cpu.so", "init_process_group@torch/distributed/distributed_c10d.py:1892")
SERVES = ("clock_nanosleep@libc.so.6", "c10d::TCPStore::waitForWorkers@libtorch_cpu.so")


@pytest.mark.parametrize(
    ("stacks", "culprits"),
    [((SERVES, CONNECTS, CONNECTS), (1, 2)), ((CONNECTS, CONNECTS, CONNECTS), ()), ((SERVES, SERVES, SERVES), ())],
    ids=["some connect", "all connect", "none connects"],
)
def test_ranks_that_cannot_connect_to_the_store_are_named(stacks, culprits):
    ranks = [rank(number, stack(*frames, *SETS_UP, *MAIN)) for number, frames in enumerate(stacks)]
    found = judge(job(*ranks)).verdict
    assert (found.cause, found.culprits) == ("init-rendezvous", culprits)
    assert found.remedies[0].action.startswith("Compare MASTER_ADDR") == (CONNECTS in stacks)


def fetching(number, *main):
    """A rank whose second thread waits for a key of the store, as a loader of samples does."""
    fetches = ("poll@libc.so.6", "c10d::TCPStore::doWait@libtorch_cpu.so", "DataFetcher.receive@fetch.py:84")
    main = stack(*main, "train@train.py:9", *MAIN, state="S", switches=0, syscall=FUTEX, id="1", lwp=number + 100)
    other = stack(*fetches, "Thread.run@threading.py:1", state="S", switches=0, id="2", lwp=number + 200)
    return rank(number, main, other, pid=number + 100)


def test_a_thread_that_waits_for_a_key_beside_a_collective_of_gloo_is_in_no_other_communicator():
    gathers = ("pthread_cond_wait@libc.so.6", "c10d::Work::wait@libtorch_cpu.so",
               "all_gather@torch/distributed/distributed_c10d.py:4287")  # fmt: skip
    found = judge(
        job(fetching(0, *gathers), fetching(1, *WAITS, "Queue.get@queue.py:171"), fetching(2, *gathers))
    ).verdict
    assert (found.cause, found.culprits) == ("missing-rank", (1,))
