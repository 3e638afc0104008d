"""Servers of engines that answer nobody, or do not come up, and their twins, which work or rest."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.activity import Activity
from gdbext.model.activity import Child as ActiveChild
from gdbext.model.clients import WaitingClient
from gdbext.model.codes import Code, ReadState
from gdbext.model.locks import NOT_ACCEPTED, Peer
from gdbext.model.missing import Missing
from gdbext.model.tasks import PythonTask
from tests.unit.stacks import frame, stack
from tests.unit.test_analysis_at_work import FUTEX, LOOPS, MAIN, SELECTS, live, process

POLLS = (7, 1, 2, 5000, 0, 0, 0)
RECV = (45, 3, 1, 1, 0, 0, 0)
ENGINE = "vllm/v1/engine/"
DEQUEUE = (
    "zmq_poll@libzmq.so.5",
    "MessageQueue.acquire_read@shm_broadcast.py:864",
    "MessageQueue.dequeue@shm_broadcast.py:9",
)
LOCK = ("do_futex_wait@libc.so.6", "lock_PyThread_acquire_lock@python3", "plan@/srv/plugin.py:7")
OUTPUT = ("Queue.get@asyncio/queues.py:158", "output_handler@" + ENGINE + "async_llm.py:849")
GENERATES = (f"AsyncLLM.generate@{ENGINE}async_llm.py:767", "create_completion@vllm/entrypoints/api_router.py:55")


def waits(*frames, call=FUTEX, **fields):
    return stack(*frames, *MAIN, **{"syscall": call, "switches": 0, "state": "S", "cpu": 0.0, **fields})


def worker(number):
    return process(number, waits(*DEQUEUE, "WorkerProc.worker_busy_loop@multiproc_executor.py:1041", call=POLLS))


def core(*frames, **fields):
    return process(2, waits(*frames, f"EngineCore.step@{ENGINE}core.py:667", **fields))


def front_end(*tasks, **fields):
    loop = waits(*SELECTS, *LOOPS, call=POLLS, switches=12)
    always = PythonTask(103, tuple(map(frame, OUTPUT)), "Task-3", waits_for="Future")
    return process(3, loop, tasks=(always, *tasks), **fields)


REQUEST = PythonTask(103, tuple(map(frame, GENERATES)), "Task-22", waits_for="Future")
IDLE_CORE = process(2, waits("Queue.get@queue.py:171", f"EngineCoreProc._process_input_queue@{ENGINE}core.py:1588"))
LOCKED_CORE = core(*LOCK)
ASKING_CORE = core(
    *DEQUEUE, "MultiprocExecutor.collective_rpc.<locals>.get_response@multiproc_executor.py:440", call=POLLS
)


def looked(*processes, seconds=30.0):
    """Two looks at the same, so many seconds apart."""
    now = replace(live(*processes), taken_at=1000.0 + seconds)
    return judge(replace(now, earlier=(replace(now, taken_at=1000.0),))).verdict


@pytest.mark.parametrize(
    ("of_core", "culprits", "confidence", "says"),
    [
        (LOCKED_CORE, (2,), "medium", "nobody works on it. Pid 102 waits in plan (plugin.py:7)"),
        (ASKING_CORE, (2,), "low", "an answer was lost, or never sent"),
        (IDLE_CORE, (3,), "low", "the request or its answer was lost, or the engine is paused"),
    ],
    ids=["core in a lock", "core without its answer", "all idle"],
)
def test_a_request_on_which_nobody_works(of_core, culprits, confidence, says):
    found = looked(worker(0), worker(1), of_core, front_end(REQUEST))
    assert (found.cause, found.confidence, found.culprits, found.finding) == ("other", confidence, culprits, True)
    assert "1 request waits in AsyncLLM.generate (async_llm.py:767)" in found.summary
    assert says in found.summary


def test_a_request_that_waits_for_a_lock_of_its_front_end():
    lock = ("Lock.acquire@asyncio/locks.py:113", "add_request@/srv/plugin.py:3", *GENERATES)
    found = looked(worker(0), worker(1), IDLE_CORE, front_end(replace(REQUEST, frames=tuple(map(frame, lock)))))
    assert (found.cause, found.culprits) == ("other", (3,))
    assert "called from add_request (plugin.py:3) of pid 103 for another task there" in found.summary
    assert found.summary.endswith("the engine has not got it.")


def test_other_requests_than_before_show_that_a_server_answers():
    """Each of them may only wait for its turn: a look catches the engine between two."""
    ranks = (worker(0), worker(1), IDLE_CORE)
    now = replace(live(*ranks, front_end(REQUEST)), taken_at=1030.0)
    then = replace(live(*ranks, front_end(replace(REQUEST, name="Task-9"))), taken_at=1000.0)
    found = judge(replace(now, earlier=(then,))).verdict
    assert (found.cause, found.finding) == ("unknown", False)
    assert judge(replace(now, earlier=(replace(now, taken_at=1000.0),))).verdict.finding


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (("sleep@asyncio/tasks.py:649", "ask_policy@/srv/plugin.py:3"), "(plugin.py:3) of pid 103 for something other"),
        (("Condition.wait@asyncio/locks.py:275",), "which may have paused the engine"),
    ],
    ids=["a plugin", "a pause"],
)
def test_what_a_request_waits_for_before_the_engine_may_come(at, says):
    waiting = replace(REQUEST, frames=tuple(map(frame, (*at, *GENERATES))))
    found = looked(worker(0), worker(1), IDLE_CORE, front_end(waiting))
    assert (found.cause, found.finding) == ("unknown", False)
    assert says in found.summary


def test_a_core_that_asks_another_host_may_get_an_answer():
    """Its workers may be there, as Ray's are."""
    reads = process(2, waits("recv@libc.so.6", "lookup@/srv/plugin.py:3", *GENERATES, call=RECV))
    there = replace(reads, peers=(Peer(102, "tcp 10.0.0.1:5 - 10.0.0.2:80", Missing("on another host")),))
    assert looked(worker(0), there, front_end(REQUEST)).cause != "other"
    assert looked(worker(0), reads, front_end(REQUEST)).cause == "other"


@pytest.mark.parametrize(("cpu", "cause"), [(0.002, "other"), (0.02, "not-a-hang")])
def test_a_front_end_that_is_seen_as_it_wakes_up_for_a_moment_works_on_nothing(cpu, cause):
    front = front_end(REQUEST)
    beside = replace(stack("monitor@/srv/plugin.py:3", *MAIN, state="R", switches=4, cpu=cpu), id="9", lwp=9)
    assert looked(worker(0), worker(1), ASKING_CORE, replace(front, threads=(*front.threads, beside))).cause == cause


def test_a_client_that_reads_slowly_is_owed_nothing():
    drains = ("FlowControlMixin._drain_helper@asyncio/streams.py:172", *GENERATES)
    found = looked(worker(0), worker(1), IDLE_CORE, front_end(replace(REQUEST, frames=tuple(map(frame, drains)))))
    assert "an answer of the engine" not in found.summary


@pytest.mark.parametrize("of_core", [LOCKED_CORE, ASKING_CORE, IDLE_CORE])
def test_one_look_does_not_tell_whether_a_request_is_worked_on(of_core):
    found = judge(live(worker(0), worker(1), of_core, front_end(REQUEST))).verdict
    assert (found.cause, found.finding, bool(found.decided_by)) == ("unknown", False, True)


@pytest.mark.parametrize("of_core", [LOCKED_CORE, ASKING_CORE, IDLE_CORE])
@pytest.mark.parametrize("tasks", [(REQUEST,), ()], ids=["a request", "a client"])
def test_while_gdb_holds_the_ranks_nothing_shows_whether_a_request_is_worked_on(of_core, tasks):
    waiting = (WaitingClient("127.0.0.1:8000", "10.0.0.5:51234", 63.0),)
    held = [replace(worker(number), source="held") for number in (0, 1)]
    front = replace(front_end(*tasks, clients=waiting), role="front end", engine="vllm")
    found = judge(live(*held, of_core, front)).verdict
    assert (found.cause, found.finding) == ("unknown", False)
    assert found.decided_by == "llm-nccl-diagnose --let-run"
    begun = ("1 request waits", "a client (10.0.0.5:51234) has waited 63 s", "waits in MessageQueue.dequeue")
    assert any(one in found.summary for one in begun)


def test_ranks_that_gdb_holds_are_to_run_before_they_are_looked_at_again():
    at_lock = waits("pthread_mutex_lock@libc.so.6", "put@/srv/cache.py:9", switches=None)
    found = judge(replace(live(replace(process(0, at_lock), source="held"), worker(1)), apart=None)).verdict
    assert found.cause == "unknown"
    (again,) = [one.action for one in found.remedies if "longer look" in one.action]
    assert again.endswith("llm-nccl-diagnose --let-run")


def test_without_a_request_an_idle_engine_is_idle():
    assert looked(worker(0), worker(1), IDLE_CORE, front_end()).cause == "not-a-hang"


def test_a_rank_that_computes_works_on_the_request():
    computes = process(1, stack("step@model.py:8", *MAIN, state="R", cpu=0.9, switches=9))
    found = looked(worker(0), computes, ASKING_CORE, front_end(REQUEST))
    assert found.cause != "other"


MANAGERS = "sglang/srt/managers/"
TURN = (
    "SchedulerRequestReceiver.recv_requests@request_receiver.py:101",
    f"Scheduler.ingest_requests@{MANAGERS}scheduler.py:9",
    f"Scheduler.event_loop_overlap@{MANAGERS}scheduler.py:8",
)
BROADCASTS = ("poll@libc.so.6", "broadcast@torch/distributed/distributed_c10d.py:2", "broadcast_pyobj@srt/utils.py:3")
STREAMS = (f"TokenizerManager._stream_one_response@{MANAGERS}tokenizer_manager.py:1960",)
WAITS_FOR_TOKENS = PythonTask(103, tuple(map(frame, ("Event.wait@asyncio/locks.py:213", *STREAMS))), "Task-9")


def polling(number, *frames, **fields):
    main = {"state": "R", "cpu": 0.3, "switches": 900, "left": 4, "still": 9, **fields}
    return process(number, stack(*(frames or (*BROADCASTS, *TURN)), *MAIN, **main), engine="sglang")


GETS_TEXTS = ("zmq_poll@libzmq.so.5", "Socket.recv_pyobj@zmq/sugar/socket.py:3")


def sglang(*ranks, detokenizer=GETS_TEXTS, tasks=()):
    texts = waits(*detokenizer, f"DetokenizerManager.event_loop@{MANAGERS}detokenizer_manager.py:4")
    front = replace(front_end(*tasks), role="front end", engine="sglang")
    return (*ranks, replace(process(2, texts), role="detokenizer", engine="sglang"), front)


def test_ranks_that_ask_for_requests_all_the_time_rest():
    found = looked(*sglang(polling(0), polling(1)))
    assert (found.cause, found.finding) == ("not-a-hang", False)


def test_ranks_that_ask_for_requests_all_the_time_do_not_work_on_one():
    """They moved between two looks, which showed nothing."""
    lock = ("do_futex_wait@libc.so.6", "lock_PyThread_acquire_lock@python3", "count_texts@/srv/plugin.py:7")
    found = looked(*sglang(polling(0), polling(1), detokenizer=lock, tasks=[WAITS_FOR_TOKENS]))
    assert (found.cause, found.culprits, found.finding) == ("other", (2,), True)
    assert "Detokenizer waits in count_texts (plugin.py:7); pid 100 and pid 101 wait for work" in found.summary
    batch = (f"Scheduler.run_batch@{MANAGERS}scheduler.py:7", TURN[-1])
    works = looked(
        *sglang(polling(0, "forward@model.py:3", *batch), polling(1), detokenizer=lock, tasks=[WAITS_FOR_TOKENS])
    )
    assert works.cause != "other"


def test_a_rank_that_stands_where_it_asks_for_requests_is_not_at_rest():
    stands = (
        "do_futex_wait@libc.so.6",
        "Condition.wait@threading.py:327",
        "Queue.put@queue.py:140",
        "note@/srv/p.py:3",
    )
    first = polling(0, *stands, *TURN, state="S", cpu=0.0, switches=0, syscall=FUTEX, still=0, left=0)
    gloo = stack("poll@libc.so.6", "gloo::broadcast@libtorch_cpu.so", *BROADCASTS[1:], *TURN, *MAIN, switches=0)
    found = looked(*sglang(first, process(1, gloo)))
    assert found.cause == "unknown" and "Pid 100 waits for room in a queue" in found.summary


def test_what_a_part_of_the_engine_has_begun_is_named_where_all_rest():
    slot = ("do_futex_wait@libc.so.6", "Condition.wait@threading.py:327", "Semaphore.acquire@threading.py:470")
    task = ("compile@/srv/plugin.py:5", "_WorkItem.run@concurrent/futures/thread.py:58")
    pool = stack(*slot, *task, "_worker@concurrent/futures/thread.py:83", syscall=FUTEX, switches=0, state="S")
    loop = polling(0)
    first = process(0, *loop.threads, pool, engine="sglang")
    found = looked(*sglang(first, polling(1), tasks=[WAITS_FOR_TOKENS]))
    assert (found.cause, found.culprits) == ("other", (0,))
    assert "waits inside of a task in Condition.wait (threading.py:327), reached from compile" in found.summary


def test_a_client_that_waits_for_an_answer_is_looked_at_again_before_anything_is_said():
    young = (WaitingClient("127.0.0.1:8000", "10.0.0.5:51234", 6.0),)
    opens = waits("flock@libc.so.6", "note@/srv/plugin.py:3", *LOOPS, call=(73, 3, 2, 0, 0, 0, 0))
    front = replace(process(3, opens, clients=young), role="front end", engine="sglang")
    ranks = sglang(polling(0), polling(1))[:-1]
    found = looked(*ranks, front, seconds=3.0)
    assert (found.cause, found.finding, bool(found.decided_by)) == ("unknown", False, True)
    overdue = replace(front, clients=(replace(young[0], seconds=26.0),))
    found = looked(*ranks, overdue)
    assert (found.cause, found.culprits) == ("other", (3,))


def test_an_event_loop_that_asks_its_own_server():
    asks = waits("recv@libc.so.6", "readinto@socket.py:706", "ask@/srv/plugin.py:3", *LOOPS, call=RECV)
    peer = Peer(103, f"tcp 127.0.0.1:5 - 127.0.0.1:80{NOT_ACCEPTED}", (103,), ("S",), ("python",))
    found = judge(live(worker(0), worker(1), IDLE_CORE, process(3, asks, peers=(peer,)))).verdict
    assert (found.cause, found.confidence, found.culprits) == ("other", "high", (3,))
    assert found.remedies[0].action.startswith("Do not block the event loop")
    accepted = replace(peer, file="tcp 127.0.0.1:5 - 127.0.0.1:80")
    assert judge(live(worker(0), IDLE_CORE, process(3, asks, peers=(accepted,)))).verdict.confidence != "high"


@pytest.mark.parametrize(
    ("beside", "cause", "confidence"),
    [
        (stack("hash@_hashlib.so", "do_GET@/srv/metrics.py:3", state="R", cpu=0.9, switches=9), "unknown", "low"),
        (waits("recv@libc.so.6", "do_GET@/srv/metrics.py:3", call=RECV), "other", "low"),
        (
            waits(
                "__futex_wait@libc.so.6",
                "Condition.wait@threading.py:327",
                "Queue.get@queue.py:171",
                "BackgroundWorker.run@/srv/writer.py:3",
            ),
            "other",
            "high",
        ),
    ],
    ids=["computes", "waits", "rests"],
)
def test_a_loop_that_asks_a_server_in_another_thread_of_its_process(beside, cause, confidence):
    asks = waits("recv@libc.so.6", "readinto@socket.py:706", "ask@/srv/plugin.py:3", *LOOPS, call=RECV)
    peer = Peer(103, f"tcp 127.0.0.1:5 - 127.0.0.1:80{NOT_ACCEPTED}", (103,), ("S",), ("python",))
    asking = replace(process(3, asks, beside, peers=(peer,)), role="front end")
    found = judge(live(worker(0), worker(1), IDLE_CORE, asking)).verdict
    assert (found.cause, found.confidence) == (cause, confidence)


def test_the_only_thread_of_a_worker_asks_its_own_server_whose_socket_its_parent_has_too():
    asks = waits("recv@libc.so.6", "readinto@socket.py:706", "index@/srv/app.py:3", "run@sync.py:9", call=RECV)
    peer = Peer(103, f"tcp 127.0.0.1:5 - 127.0.0.1:80{NOT_ACCEPTED}", (100, 103), ("S", "S"), ("gunicorn",) * 2)
    parent = process(0, waits("__futex_wait@libc.so.6", "get@queue.py:171", "Arbiter.run@arbiter.py:257"))
    found = judge(live(parent, process(3, asks, peers=(peer,)))).verdict
    assert (found.cause, found.confidence, found.culprits) == ("other", "medium", (1,))
    assert "This thread would have to accept that connection" in found.summary
    accepts = waits("accept4@libc.so.6", "accept@socket.py:294", "run@sync.py:9", call=(288, 3, 0, 0, 0, 0, 0))
    takes = process(0, accepts, peers=(Peer(100, "tcp 127.0.0.1:80, listening", Missing("any", Code.ANYBODY)),))
    assert judge(live(takes, process(3, asks, peers=(peer,)))).verdict.cause != "other"


STARTS_CORE = ("zmq_poll@libzmq.so.5", f"wait_for_engine_startup@{ENGINE}utils.py:1361")
STARTS_WORKERS = ("poll@libc.so.6", "WorkerProc.wait_for_ready@vllm/v1/executor/multiproc_executor.py:790")
LOADS = (
    "open64@libc.so.6",
    "load_shard@/srv/plugin.py:3",
    "WorkerProc.__init__@vllm/v1/executor/multiproc_executor.py:687",
)


def starting(of_worker):
    return (process(1, of_worker), process(2, waits(*STARTS_WORKERS)), process(3, waits(*STARTS_CORE, call=POLLS)))


def test_a_server_that_does_not_start_waits_for_who_stands():
    found = looked(*starting(waits(*LOADS, call=(257, 1, 1, 1, 0, 0, 0))))
    assert (found.cause, found.confidence, found.culprits) == ("other", "medium", (0,))
    assert "holds it up: it waits in load_shard (plugin.py:3)" in found.summary
    assert judge(live(*starting(waits(*LOADS)))).verdict.cause == "unknown"


def test_a_server_whose_rank_loads_may_just_be_slow():
    assert looked(*starting(waits(*LOADS, state="R", cpu=0.9, switches=9))).cause != "other"


FUTURE = ("Condition.wait@threading.py:327", "Future.result@concurrent/futures/_base.py:451")
CHILD = (
    "waitid@libc.so.6",
    "Popen._wait@subprocess.py:1278",
    "Popen._try_wait@subprocess.py:2004",
    "build@/srv/jit.py:3",
)
HASHES = stack("hash@_hashlib.so", "read_part@/srv/plugin.py:9", state="R", cpu=0.9, switches=9)
NAPS = stack("clock_nanosleep@libc.so.6", "read_part@/srv/plugin.py:9", state="S", sleeps=0.1, switches=5, cpu=0.0)
WAIT_FOR_CHILD = (61, 9, 0, 0, 0, 0, 0)
BUSY, NAPPING = Activity(1.0, children=(ActiveChild("ninja", 9, 0.9),)), Activity(1.0, napping=1)


@pytest.mark.parametrize(
    "of_worker",
    [
        process(1, waits(*CHILD, call=WAIT_FOR_CHILD), activity=BUSY),
        process(1, waits(*FUTURE), HASHES),
        process(1, waits(*FUTURE), activity=Activity(1.0, read_bytes=1 << 24)),
    ],
    ids=["a child", "a thread", "a reader"],
)
def test_a_rank_whose_child_or_thread_works_hangs_nowhere(of_worker):
    core_waits = (process(2, waits(*STARTS_WORKERS)), process(3, waits(*STARTS_CORE, call=POLLS)))
    assert looked(of_worker, *core_waits).cause != "other"
    assert looked(worker(0), of_worker, ASKING_CORE, front_end(REQUEST)).cause != "other"


@pytest.mark.parametrize(
    "of_worker",
    [process(1, waits(*CHILD, call=WAIT_FOR_CHILD), activity=NAPPING), process(1, waits(*FUTURE), NAPS)],
    ids=["a child", "a thread"],
)
def test_a_rank_whose_child_or_thread_naps_may_load_slowly(of_worker):
    core_waits = (process(2, waits(*STARTS_WORKERS)), process(3, waits(*STARTS_CORE, call=POLLS)))
    for found in (looked(of_worker, *core_waits), looked(worker(0), of_worker, ASKING_CORE, front_end(REQUEST))):
        assert (found.cause, found.finding, bool(found.decided_by)) == ("unknown", False, True)


def test_a_rank_that_loads_what_somebody_outside_sends_may_be_slow():
    reads = waits("recv@libc.so.6", "load_shard@/srv/plugin.py:3", call=RECV)
    for pids in ((99,), Missing("its other end is on another host")):
        loads = process(1, reads, peers=(Peer(101, "tcp 127.0.0.1:5 - 127.0.0.1:80", pids),))
        core_waits = (process(2, waits(*STARTS_WORKERS)), process(3, waits(*STARTS_CORE, call=POLLS)))
        found = looked(loads, *core_waits)
        assert (found.cause, found.confidence, found.culprits) == ("other", "low", (0,))


def test_a_front_end_whose_thread_works_on_the_request_owes_nothing():
    loop = waits(*SELECTS, *LOOPS, call=POLLS, switches=12)
    front = process(3, loop, HASHES, tasks=front_end(REQUEST).tasks)
    assert looked(worker(0), worker(1), IDLE_CORE, front).cause != "other"


def test_a_process_that_a_signal_has_stopped_is_named_among_idle_ones():
    stopped = process(2, stack(*DEQUEUE, *MAIN, state="T"), role="engine core")
    found = judge(live(worker(0), worker(1), stopped, front_end())).verdict
    assert (found.cause, found.confidence, found.culprits) == ("other", "high", (2,))
    assert "Engine core is stopped by a signal" in found.summary and "SIGCONT" in found.summary


def test_a_process_that_is_stopped_again_and_again_goes_on():
    """As what limits CPU time by signals does it."""
    stopped = process(2, stack(*DEQUEUE, *MAIN, state="T", switches=3), role="engine core")
    found = judge(live(worker(0), worker(1), stopped, front_end())).verdict
    assert (found.cause, found.finding) == ("unknown", False)
    assert "again and again" in found.summary


def test_a_front_end_whose_loop_a_call_blocks_does_not_rest():
    opens = waits("open64@libc.so.6", "read_policy@/srv/plugin.py:3", *LOOPS, call=(257, 1, 1, 1, 0, 0, 0))
    front = process(3, opens, role="front end")
    ranks = (worker(0), worker(1), replace(IDLE_CORE, role="engine core"))
    assert judge(live(*ranks, front)).verdict.cause == "unknown"
    rests = process(3, waits("run@uvloop/__init__.py:69", "cmd@vllm/entrypoints/cli/serve.py:148"), role="front end")
    assert judge(live(*ranks, rests)).verdict.cause != "unknown"


def test_an_idle_engine_is_less_surely_so_while_a_client_has_no_answer():
    """A stream that is open looks the same."""
    handler = ("app@/srv/handlers.py:3", "RequestResponseCycle.run_asgi@uvicorn/protocols/http/h11_impl.py:403")
    asked = PythonTask(103, tuple(map(frame, handler)), "Task-9", waits_for="Future")
    assert judge(live(worker(0), worker(1), IDLE_CORE, front_end())).verdict.confidence == "high"
    found = judge(live(worker(0), worker(1), IDLE_CORE, front_end(asked))).verdict
    assert (found.cause, found.confidence) == ("not-a-hang", "medium")
    assert "a web server has not answered a client yet" in found.summary


def test_a_front_end_that_cannot_be_read_changes_nothing_but_how_sure_rest_is():
    unread = replace(process(3), role="front end", state=ReadState.LOST, alive=True)
    ranks = [worker(0), worker(1)]
    assert judge(live(*ranks)).verdict.confidence == "high"
    found = judge(live(*ranks, unread)).verdict
    assert (found.cause, found.confidence) == ("not-a-hang", "medium")


@pytest.mark.parametrize(("engine", "confidence"), [(None, "high"), ("vllm", "medium"), ("deepspeed", "high")])
def test_ranks_alone_do_not_show_that_an_engine_is_idle(engine, confidence):
    """As gdb holds them, or as `--name` chose them: the engine core may be what hangs."""
    ranks = (replace(worker(number), engine=engine) for number in (0, 1))
    found = judge(live(*ranks)).verdict
    assert (found.cause, found.confidence) == ("not-a-hang", confidence)
    assert ("other processes were not read" in found.summary) == (engine == "vllm")


def test_where_no_process_could_be_read_there_is_an_answer():
    unread = replace(process(3), role="front end", state=ReadState.LOST, alive=True)
    assert judge(live(unread)).verdict.cause == "unknown"


CLIENT = WaitingClient("127.0.0.1:8000", "127.0.0.1:51234", 63.2, (4711,), ("curl",))


def serving(*clients, engine="rtp-llm", threads=(), **fields):
    """A front end that has such clients; nothing is known of coroutines."""
    loop = waits(*SELECTS, *LOOPS, call=POLLS, switches=12)
    one = replace(process(3, loop, *threads, **fields), clients=clients, engine=engine)
    return replace(one, role="front end")


@pytest.mark.parametrize(
    ("of_core", "culprits", "confidence", "says"),
    [
        (LOCKED_CORE, (2,), "medium", "Pid 102 waits in plan (plugin.py:7)"),
        (IDLE_CORE, (3,), "low", "the request or its answer was lost, or the engine is paused"),
    ],
    ids=["core in a lock", "all idle"],
)
def test_a_client_that_got_no_answer_shows_a_request_of_an_engine_without_known_coroutines(
    of_core, culprits, confidence, says
):
    found = looked(worker(0), worker(1), of_core, serving(CLIENT))
    assert (found.cause, found.confidence, found.culprits, found.finding) == ("other", confidence, culprits, True)
    assert found.summary.startswith(
        "A client (pid 4711, curl) has waited 63 s for an answer from front end at 127.0.0.1:8000, and nobody works on "
    )
    assert says in found.summary


def test_one_process_that_is_the_whole_engine():
    found = looked(replace(serving(CLIENT, engine="turbomind"), role="rank", index=0))
    assert (found.cause, found.culprits) == ("other", (0,))


@pytest.mark.parametrize(
    ("client", "engine", "cause"),
    [
        (replace(CLIENT, seconds=9.0), "rtp-llm", "not-a-hang"),
        (CLIENT, None, "unknown"),  # it may only listen
    ],
    ids=["it has just asked", "no engine"],
)
def test_a_client_that_may_well_wait(client, engine, cause):
    assert looked(worker(0), worker(1), IDLE_CORE, serving(client, engine=engine)).cause == cause


def test_an_engine_that_computes_works_on_what_a_client_asked_for():
    computes = process(1, stack("step@model.py:8", *MAIN, state="R", cpu=0.9, switches=9))
    assert looked(worker(0), computes, ASKING_CORE, serving(CLIENT)).cause != "other"
    beside = stack("gemm@libmkl.so", id="9", lwp=9, state="R", cpu=0.9, switches=9)
    assert looked(serving(CLIENT, threads=(beside,))).cause != "other"


def test_clients_of_ranks_may_be_other_processes_of_the_engine():
    ranks = [replace(worker(number), engine="vllm", clients=(CLIENT,)) for number in (0, 1)]
    assert looked(*ranks).cause == "not-a-hang"
    assert looked(*ranks, IDLE_CORE, serving()).cause == "not-a-hang"


def test_of_several_clients_the_one_that_has_waited_longest_is_named():
    other = WaitingClient("[::1]:8000", "10.0.0.5:4", 40.0, unread=12)
    found = looked(worker(0), worker(1), IDLE_CORE, serving(CLIENT, other))
    assert found.summary.startswith("2 clients (one is pid 4711, curl) have waited up to 63 s for an answer")
    found = looked(worker(0), worker(1), IDLE_CORE, serving(other))
    assert "A client (10.0.0.5:4) has waited 40 s" in found.summary
    assert "front end has not read 12 bytes of it" in found.summary


def test_a_request_in_another_web_server_leaves_an_idle_engine_less_sure():
    handler = PythonTask(
        103, (frame("RequestResponseCycle.run_asgi@uvicorn/protocols/http/h11_impl.py:410"),), "Task-9"
    )
    assert looked(worker(0), worker(1), IDLE_CORE, front_end()).confidence == "high"
    found = looked(worker(0), worker(1), IDLE_CORE, front_end(handler))
    assert (found.cause, found.confidence) == ("not-a-hang", "medium")
    assert "a web server has not answered a client yet" in found.summary


def test_who_is_stopped_and_resumed_again_and_again_is_not_said_to_stand():
    """As a limit on the processor's use by SIGSTOP does it."""
    ran = process(2, stack(*DEQUEUE, *MAIN, state="T", switches=3), role="engine core")
    found = judge(live(worker(0), worker(1), ran, front_end())).verdict
    assert (found.cause, found.finding) == ("unknown", False)
    assert "somebody stops and resumes it again and again" in found.summary


LOOKS = ("poll@libc.so.6", "Poller.poll@zmq/sugar/poll.py:106",
         "IdleSleeper.maybe_sleep@sglang/srt/managers/idle_sleeper.py:37",
         "Scheduler.event_loop_normal@sglang/srt/managers/scheduler.py:900")  # fmt: skip
FOLLOWS = ("gloo::broadcast@libtorch_cpu.so", "broadcast@torch/distributed/distributed_c10d.py:2800",
           "broadcast_pyobj@sglang/srt/utils/common.py:1200")  # fmt: skip
COUNTS_WORDS = (
    *LOCK[:2],
    "remember@/srv/plugin.py:9",
    "DetokenizerManager.event_loop@sglang/srt/managers/detokenizer.py:99",
)
SENDS = "TokenizerManager._stream_one_response@sglang/srt/managers/tokenizer_manager.py:1960"
ANSWER = PythonTask(103, (frame(SENDS),), "Task-21", waits_for="Future")


def of_sglang(detokenizer, *tasks, leader=LOOKS):
    """Ranks that look for requests, the second one by a broadcast of the first one; they move all the time."""
    ranks = [process(0, waits(*leader, call=POLLS, switches=7)), process(1, waits(*FOLLOWS, switches=5))]
    return (
        *ranks,
        replace(process(2, waits(*detokenizer)), role="detokenizer"),
        replace(front_end(*tasks), role="front end"),
    )


RECEIVES = ("Socket.recv_pyobj@zmq/sugar/socket.py:9", "sock_recv@sglang/srt/managers/io_struct.py:3")


def test_ranks_that_look_for_requests_do_not_show_that_a_server_goes_on():
    found = looked(*of_sglang(COUNTS_WORDS, ANSWER))
    assert (found.cause, found.confidence, found.culprits) == ("other", "medium", (2,))
    assert "Detokenizer waits in remember (plugin.py:9); pid 100 and pid 101 wait for work" in found.summary


def test_a_detokenizer_that_is_stopped_is_named_beside_such_ranks():
    stopped = replace(process(2, stack(*RECEIVES, *MAIN, state="T")), role="detokenizer")
    found = judge(live(*of_sglang(RECEIVES)[:2], stopped, replace(front_end(), role="front end"))).verdict
    assert (found.cause, found.confidence, found.culprits) == ("other", "high", (2,))


def test_such_a_server_without_requests_is_idle():
    found = looked(*of_sglang(RECEIVES))
    assert (found.cause, found.confidence) == ("not-a-hang", "high")


def test_a_follower_whose_leader_stands_elsewhere_waits_for_it():
    puts = ("do_futex_wait@libc.so.6", "Queue.put@queue.py:140", "note@/srv/plugin.py:5")
    found = looked(*of_sglang(RECEIVES, ANSWER, leader=puts))
    assert found.cause != "not-a-hang" and "wait for work" not in found.summary


READY = "MessageQueue.wait_until_ready@vllm/distributed/device_communicators/shm_broadcast.py:703"
STARTS = "wait_for_engine_startup@vllm/v1/engine/utils.py:1398"
RECV_FOR_EVER = (7, 1, 1, 0xFFFFFFFF, 0, 0, 0)


def with_roles(*parts):
    """Who waits where while a server starts: processes with roles."""
    return [replace(process(at, one), role=role) for at, (role, one) in enumerate(parts)]


def test_parts_that_all_wait_for_the_first_message_of_another_one_do_not_start():
    ready = waits("zmq_msg_recv@libzmq.so.5", READY, call=RECV_FOR_EVER)
    front = ("front end", waits("zmq_poll@libzmq.so.5", STARTS, call=POLLS))
    resting = ("rank", worker(0).threads[0])
    parts = [resting, ("rank", ready), ("engine core", ready), front]
    found = looked(*with_roles(*parts))
    assert (found.cause, found.confidence, found.culprits) == ("init-rendezvous", "low", (1, 2))
    assert "no part is still at work" in found.summary
    assert not looked(*with_roles(*parts), seconds=3.0).finding
    loads = ("rank", stack("read@libc.so.6", "load_weights@loader.py:9", *MAIN, state="R", cpu=0.9, switches=9))
    assert not looked(*with_roles(resting, loads, ("engine core", ready), front)).culprits


def picture_core(*marks, inner="_Pictures.make_room@cache.py:72", **fields):
    """Its main thread waits for messages, and the one that takes them computes."""
    main = waits("Queue.get@queue.py:171", f"EngineCoreProc._process_input_queue@{ENGINE}core.py:1588")
    takes = stack("dict_get@python3", inner, f"EngineCoreProc.process_input_sockets@{ENGINE}core.py:1903",
                  **{"state": "R", "cpu": 0.9, "switches": 90, "marks": marks, **fields})  # fmt: skip
    return replace(process(2, main, takes), role="engine core")


@pytest.mark.parametrize(
    ("before", "now", "seconds", "cause"),
    [
        ((5, 6), (5, 7), 30.0, "other"),
        ((5, 6), (5, 0), 30.0, "other"),
        ((5, 6), (5, 7), 3.0, "unknown"),
        ((5, 6), (8, 7), 30.0, "not-a-hang"),
    ],
    ids=["in one call", "it has just called another", "for a short time", "it took another message"],
)
def test_a_thread_of_the_engine_core_that_computes_in_one_call_while_requests_wait(before, now, seconds, cause):
    jobs = [live(worker(0), picture_core(*marks), front_end(REQUEST)) for marks in (before, now)]
    earlier = replace(jobs[0], taken_at=1000.0)
    found = judge(replace(jobs[1], taken_at=1000.0 + seconds, earlier=(earlier,))).verdict
    assert (found.cause, found.culprits) == (cause, (1,) if cause == "other" else ())
    assert cause != "other" or "has been in one call for 30 s" in found.summary


def test_a_loop_that_takes_one_message_after_the_other_is_no_call():
    looks = [live(worker(0), picture_core(5, mark, inner=f"EngineCoreProc.process_input_sockets@{ENGINE}core.py:1900"),
                  front_end(REQUEST)) for mark in (6, 7)]  # fmt: skip
    found = judge(replace(looks[1], taken_at=1030.0, earlier=(replace(looks[0], taken_at=1000.0),))).verdict
    assert found.cause == "not-a-hang"


def test_nobody_waits_for_the_call_of_an_engine_without_requests():
    assert looked(worker(0), picture_core(5, 7), front_end()).cause == "not-a-hang"


def idle_turns(*inner, **fields):
    naps = ("clock_nanosleep@libc.so.6", "time_sleep@python3", *inner)
    turns = (f"EngineCoreProc._process_engine_step@{ENGINE}core.py:1617", f"run_busy_loop@{ENGINE}core.py:1555")
    main = stack(*naps, *turns, *MAIN, **{"state": "S", "sleeps": 0.001, "switches": 800, "cpu": 0.3, **fields})
    return replace(process(2, main), role="engine core")


@pytest.mark.parametrize(
    ("core", "tasks", "seconds", "cause"),
    [
        (idle_turns(), (REQUEST,), 30.0, "other"),
        (idle_turns(), (REQUEST,), 3.0, "unknown"),
        (idle_turns(), (), 30.0, "not-a-hang"),
        (idle_turns("wait_for_disk@/srv/plugin.py:3"), (REQUEST,), 30.0, "not-a-hang"),
    ],
    ids=["requests wait", "for a short time", "no request waits", "it sleeps elsewhere"],
)
def test_an_engine_core_that_runs_no_batch_turn_after_turn_while_requests_wait(core, tasks, seconds, cause):
    found = looked(worker(0), worker(1), core, front_end(*tasks), seconds=seconds)
    assert (found.cause, found.culprits) == (cause, (2,) if cause == "other" else ())
    assert cause != "other" or "has found nothing to run for 30 s" in found.summary
