"""Programs that wait for nobody but themselves, idle servers, messages that nobody answers, lost results."""

from dataclasses import replace

import pytest

from gdbext.analysis.progress.running import was_woken
from gdbext.analysis.stacks.thread_kind import judge_thread
from gdbext.analysis.verdict.judge import judge
from gdbext.model.activity import Activity, Child
from gdbext.model.clients import WaitingClient
from gdbext.model.codes import Code, LoopKind
from gdbext.model.locks import UNOPENED, LockWait, Peer
from gdbext.model.missing import Missing
from gdbext.model.stack import LoopInText
from tests.unit.stacks import ENTRY, gloo_reducing, job, rank, stack

MAIN = ("<module>@program.py:9", "main@python3")
FUTEX, READ, POLL = (202, 1, 128, 0, 0, 0, 0), (0, 3, 0, 0, 0, 0, 0), (7, 1, 1, 500, 0, 0, 0)
JOINS = ("__futex_wait@libc.so.6", "join@threading.py:1", *MAIN)
GETS = ("read@libc.so.6", "_recv@multiprocessing/connection.py:379", "get@multiprocessing/queues.py:364")
ACCEPTS = ("accept4@libc.so.6", "accept@socket.py:294")
SELECTS = ("epoll_wait@libc.so.6", "select@selectors.py:468")
LOOPS = ("_run_once@asyncio/base_events.py:1884", "run_forever@asyncio/base_events.py:607")


def live(*processes):
    """Processes without numbers, of which two copies were read."""
    made = (replace(one, rank=None, pid=100 + one.rank) for one in processes)
    return job(*made, world_size=None, apart=0.5)


def process(number, *threads, **fields):
    named = [replace(one, id=str(100 + number + 10 * at), lwp=100 + number + 10 * at) for at, one in enumerate(threads)]
    return rank(number, *named, **fields)


def verdict(*processes):
    return judge(live(*processes)).verdict


def lasting(*processes, seconds=30.0):
    """The verdict on processes that stood there that long."""
    now = replace(live(*processes), taken_at=1000.0 + seconds)
    return judge(replace(now, earlier=(replace(now, taken_at=1000.0),))).verdict


@pytest.mark.parametrize(
    ("call", "switches", "woken"),
    [(FUTEX, 2, True), (READ, 1, True), (FUTEX, 0, False), (POLL, 3, False),
     ((232, 4, 0, 1, 0xFFFFFFFF, 0, 0), 1, True),
     ((202, 1, 128, 0, 0x7FFF0000, 0, 0), 5, False), (None, 4, False)],
)  # fmt: skip
def test_who_is_woken_from_a_wait_without_a_timeout_has_got_something(call, switches, woken):
    assert was_woken(stack(*JOINS, syscall=call, switches=switches)) is woken


def test_a_main_thread_that_waits_for_threads_which_compute():
    worker = stack("hash@_hashlib.so", "work@program.py:3", state="R", cpu=0.9, switches=9)
    found = verdict(process(0, stack(*JOINS, syscall=FUTEX, switches=0), worker))
    assert (found.cause, found.culprits) == ("not-a-hang", ())


def test_threads_that_only_wake_up_again_and_again_prove_nothing():
    watch = stack(
        "clock_nanosleep@libc.so.6", "time_sleep@python3", "watch@program.py:3", sleeps=0.1, switches=5, state="S"
    )
    found = verdict(process(0, stack(*JOINS, syscall=FUTEX, switches=0), watch))
    assert (found.cause, found.finding) == ("unknown", False)
    assert found.decided_by is not None


def test_a_line_of_processes_whose_queues_move():
    moving = [process(number, stack(*GETS, "work@program.py:5", *MAIN, syscall=READ, switches=7)) for number in (0, 1)]
    assert verdict(*moving).cause == "not-a-hang"


def test_an_event_loop_is_idle_only_where_it_selects_itself():
    idle = verdict(process(0, stack(*SELECTS, *LOOPS, *MAIN, syscall=READ, switches=0)))
    assert idle.cause == "not-a-hang"
    callback = ("__futex_wait@libc.so.6", "wait@threading.py:320", "result@concurrent/futures/_base.py:451")
    stuck = verdict(process(0, stack(*callback, "handler@program.py:4", *LOOPS, *MAIN, syscall=FUTEX, switches=0)))
    assert stuck.cause != "not-a-hang"


WAITS_FOR_CHILD = ("wait4@libc.so.6", "os_waitpid@python3", "_do_waitpid@asyncio/unix_events.py:1430", *ENTRY)


@pytest.mark.parametrize(("used", "cause"), [((), "unknown"), ((Child("sh", 9, 0.2),), "not-a-hang")])
def test_an_event_loop_whose_thread_waits_for_a_child_is_idle_only_while_the_child_works(used, cause):
    loop = stack(*SELECTS, *LOOPS, *MAIN, syscall=READ, switches=0)
    child = stack(*WAITS_FOR_CHILD, syscall=(61, 9, 0, 0, 0, 0, 0), switches=0)
    assert verdict(process(0, loop, child, activity=Activity(1.0, children=used))).cause == cause


NAPS = ("clock_nanosleep@libc.so.6", "time_sleep@python3", "poll_flag@program.py:3", *MAIN)


def test_processes_that_only_wake_up_again_and_again_may_wait_for_each_other():
    both = [process(number, stack(*NAPS, sleeps=0.01, switches=90, state="S", cpu=0.003)) for number in (0, 1)]
    found = verdict(*both)
    assert (found.cause, found.finding, bool(found.decided_by)) == ("unknown", False, True)
    works = process(1, stack("step@program.py:8", *MAIN, state="R", cpu=0.9, switches=9))
    assert verdict(both[0], works).cause == "not-a-hang"


def test_a_busy_handler_that_tries_again_waits_for_a_lock():
    tries = ("clock_nanosleep@libc.so.6", "usleep@libc.so.6", "sqlite3InvokeBusyHandler@libsqlite3.so.0")
    found = verdict(process(0, stack(*tries, "sqlite3_step@libsqlite3.so.0", *MAIN, sleeps=0.1, switches=22, cpu=0.0)))
    assert found.cause == "unknown"


def test_ranks_that_spin_inside_of_communication_do_not_work():
    spins = ("sched_yield@libc.so.6", "ompi_sync_wait_mt@libopen-pal.so.40", "PMPI_Allreduce@libmpi.so.40")
    other = ("opal_progress@libopen-pal.so.40", "PMPI_Comm_split@libmpi.so.40")
    ranks = [rank(n, stack(*one, *MAIN, state="R", cpu=0.9)) for n, one in enumerate((spins, other))]
    assert judge(job(*ranks, apart=0.5)).verdict.cause != "not-a-hang"


POOL_PARENT = (
    "__futex_wait@libc.so.6",
    "Condition.wait@threading.py:320",
    "ApplyResult.get@multiprocessing/pool.py:768",
)


def pool(worker, **fields):
    parent = process(0, stack(*POOL_PARENT, "run@program.py:5", *MAIN, syscall=FUTEX, switches=0))
    return verdict(parent, process(1, stack(*worker, "worker@multiprocessing/pool.py:114", *MAIN, **fields)))


def test_a_result_that_nobody_works_on_is_lost():
    found = pool(GETS, syscall=READ, switches=0)
    assert (found.cause, found.confidence, found.finding) == ("other", "medium", True)
    assert "no worker is running that task" in found.summary


def test_a_result_that_somebody_works_on_is_not():
    assert pool(("step@program.py:8",), state="R", cpu=0.9, switches=4).cause == "not-a-hang"


def broadcasting(number):
    call = ("__futex_wait@libc.so.6", "c10d::ProcessGroupGloo::AsyncBroadcastWork::wait@libtorch_cpu.so")
    return rank(
        number, stack(*call, "broadcast@torch/distributed/distributed_c10d.py:2800", *MAIN, state="S", switches=0)
    )


@pytest.mark.parametrize("front", [ACCEPTS, (*SELECTS, *LOOPS)], ids=["accept", "asyncio"])
def test_followers_of_a_leader_without_requests_hang_in_nothing(front):
    leader = rank(0, stack(*front, "serve@program.py:4", *MAIN, state="S", switches=0))
    found = judge(job(leader, broadcasting(1), broadcasting(2), apart=0.5)).verdict
    assert (found.cause, found.finding) == ("not-a-hang", False)


@pytest.mark.parametrize(("cpu", "cause"), [(0.9, "not-a-hang"), (0.0, "unknown")])
def test_who_waits_for_a_future_while_its_task_computes_is_at_work(cpu, cause):
    wait = ("syscall@libc.so.6", "std::__future_base::_State_baseV2::wait@engine future:337")
    gets = stack(*wait, "std::__basic_future<float>::_M_get_result@engine future:720", "tune@engine tune.cc:4",
                 *MAIN[1:], syscall=FUTEX, switches=0, state="S")  # fmt: skip
    computes = stack("contract@engine tune.cc:9", "clone3@libc.so.6", state="R" if cpu else "S", cpu=cpu, switches=9)
    assert verdict(process(0, gets, computes)).cause == cause


def stops(function):
    joins = stack("__futex_wait@libc.so.6", "std::thread::join@libstdc++.so.6", f"{function}@engine server.cc:338",
                  "main@engine server.cc:370", syscall=FUTEX, switches=0, state="S")  # fmt: skip
    reads = stack("recv@libc.so.6", "Stream::receive@engine server.cc:292", "clone3@libc.so.6", state="S",
                  syscall=(45, 4, 1, 32, 0, 0, 0), switches=0)  # fmt: skip
    ends = ("tcp 127.0.0.1:1 - 127.0.0.1:2", "tcp 127.0.0.1:2 - 127.0.0.1:1")
    mine = Peer(110, ends[0], (101,), ("S",), ("engine",), unowed=True, back=ends[1])
    other = Peer(101, ends[1], (100,), ("S",), ("engine",), unowed=True, back=ends[0])
    accepts = stack(*ACCEPTS[:1], "Server::listen@engine server.cc:300", "clone3@libc.so.6", state="S",
                    syscall=(288, 3, 0, 0, 0, 0, 0), switches=0)  # fmt: skip
    return verdict(process(0, joins, reads, accepts, peers=(mine,)), process(1, reads, peers=(other,)))


def test_a_server_that_is_being_stopped_does_not_wait_for_requests():
    assert stops("Server::serve").cause == "not-a-hang"
    assert stops("Server::stop").cause == "unknown"


def test_followers_of_a_leader_that_waits_for_connections_while_it_sets_up_may_hang():
    leader = rank(0, stack(*ACCEPTS, "Communicator.__init__@program.py:4", *MAIN, state="S", switches=0))
    found = judge(job(leader, broadcasting(1), broadcasting(2), apart=0.5)).verdict
    assert (found.cause, found.confidence, found.culprits) == ("missing-rank", "low", (0,))


@pytest.mark.parametrize(("source", "cause"), [(0, "not-a-hang"), (1, "missing-rank")], ids=["the leader", "itself"])
def test_who_gives_the_data_of_a_broadcast_takes_no_orders(source, cause):
    leader = rank(0, stack(*SELECTS, *LOOPS, "serve@program.py:4", *MAIN, state="S", switches=0))
    one = broadcasting(1)
    frames = one.threads[0].frames
    called = replace(frames[2], captures={"group": "0", "ranks": "0,1", "group_src": source})
    one = replace(one, threads=(replace(one.threads[0], frames=(*frames[:2], called, *frames[3:])),))
    assert judge(job(leader, one, apart=0.5)).verdict.cause == cause


@pytest.mark.parametrize(("then", "cause"), [(100, "unknown"), (9, "not-a-hang")], ids=["it waits back", "it does not"])
def test_followers_of_a_leader_whose_front_end_waits_for_it_in_turn(then, cause):
    back = Peer(99, "pipe:[8]", (then,), ("S",), ("python",))
    peer = Peer(100, "pipe:[7]", (99,), ("S",), ("python",), then=(back,))
    leader = rank(0, stack(*GETS, *MAIN, id="100", lwp=100, state="S", switches=0), pid=100, peers=(peer,))
    found = judge(job(leader, broadcasting(1), broadcasting(2), apart=0.5)).verdict
    assert (found.cause == "not-a-hang") is (cause == "not-a-hang")


ASKS_ZMQ = ("poll@libc.so.6", "zmq_msg_recv@libzmq.so.5", "recv_pyobj@zmq/sugar/socket.py:985")


@pytest.mark.parametrize(("front", "thread"), [(SELECTS, "m0"), (ASKS_ZMQ, "io")], ids=["selector", "zmq"])
@pytest.mark.parametrize("listens", [True, False])
def test_followers_of_a_leader_that_waits_for_messages_hang_only_where_nobody_may_send_any(front, thread, listens):
    """Its socket listens: idle. Where nothing says so nobody knows whether requests get lost."""
    main = stack(*front, "batch@program.py:4", *MAIN, id="m0", lwp=7, state="S", switches=0)
    library = ("epoll_wait@libc.so.6", "??@libzmq-2f02442c.so.5", *ENTRY)
    inside = stack(*library, id="io", lwp=8, name="ZMQbg/IO/0", state="S")
    peer = Peer(7 if thread == "m0" else 8, "unix socket:[9], listening", Missing("it listens", Code.ANYBODY))
    leader = rank(0, main, inside, peers=(peer,) if listens else ())
    found = judge(job(leader, broadcasting(1), broadcasting(2), apart=0.5)).verdict
    assert found.cause == ("not-a-hang" if listens else "unknown")


def test_one_program_that_waits_for_whoever_connects_is_idle():
    peer = Peer(100, "tcp 0.0.0.0:80, listening", Missing("it listens", Code.ANYBODY))
    front = stack(*SELECTS, "loop@program.py:4", *MAIN, syscall=(232, 4, 0, 1, 0xFFFFFFFF, 0, 0), switches=0)
    assert verdict(process(0, front, peers=(peer,))).cause == "not-a-hang"
    assert verdict(process(0, front)).cause == "unknown"


def test_followers_of_a_leader_that_reads_a_file_do():
    leader = rank(0, stack("read@libc.so.6", "load@program.py:4", *MAIN, state="S", switches=0))
    found = judge(job(leader, broadcasting(1), broadcasting(2), apart=0.5)).verdict
    assert (found.cause, found.culprits) == ("missing-rank", (0,))


def gloo(number, work, name):
    call = ("__futex_wait@libc.so.6", f"c10d::ProcessGroupGloo::{work}Work::wait@libtorch_cpu.so")
    return rank(number, stack(*call, f"{name}@torch/distributed/distributed_c10d.py:2000", *MAIN, state="S"))


def test_a_receive_that_nobody_answers():
    found = judge(job(gloo(0, "Recv", "recv"), gloo(1, "AsyncAllreduce", "all_reduce"),
                      gloo(2, "AsyncAllreduce", "all_reduce"))).verdict  # fmt: skip
    assert (found.cause, found.culprits) == ("collective-mismatch", (0,))


def test_nothing_is_said_of_a_receive_while_somebody_sends():
    found = judge(job(gloo(0, "Recv", "recv"), gloo(1, "Send", "send"))).verdict
    assert found.cause == "unknown"


def test_two_processes_that_listen_to_each_other():
    def listening(number, other):
        call = ("recv@libc.so.6", "_recv@multiprocessing/connection.py:379", "ask@program.py:4", *MAIN)
        peer = Peer(100 + number, f"unix socket:[{number}]", (100 + other,), ("S",), ("python",))
        return process(number, stack(*call, syscall=(45, 3, 0, 0, 0, 0, 0), switches=0, state="S"), peers=(peer,))

    found = verdict(listening(0, 1), listening(1, 0))
    assert (found.cause, found.culprits) == ("other", (0, 1))
    assert "wait for each other" in found.summary


@pytest.mark.parametrize(("child", "cause"), [(101, "not-a-hang"), (999, "unknown")], ids=["its server", "another one"])
def test_who_waits_for_the_end_of_a_server_without_requests_is_at_rest(child, cause):
    waits = ("wait4@libc.so.6", "Popen.poll@/lib/python3.11/multiprocessing/popen_fork.py:27", *MAIN)
    parent = process(0, stack(*waits, syscall=(61, child, 1, 0, 0, 0, 0), switches=0, state="S"))
    found = verdict(parent, process(1, stack(*ACCEPTS, "serve@program.py:3", *MAIN, syscall=(288, 3, 0, 0, 0, 0, 0),
                                             switches=0, state="S")))  # fmt: skip
    assert found.cause == cause
    assert ("waits until a server ends" in found.summary) == (child == 101)


def test_a_worker_that_waits_outside_holds_up_its_program():
    parent = process(0, stack("wait4@libc.so.6", "poll@multiprocessing/popen_fork.py:27", *MAIN, switches=0, state="S"))
    worker = process(1, stack("read@libc.so.6", "load@program.py:4", *MAIN, switches=0, state="S"))
    found = lasting(parent, worker)
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", (1,))
    soon = verdict(parent, worker)
    assert (soon.cause, soon.finding) == ("unknown", False), "a service may answer slowly"
    assert "pid 101 waits in load (program.py:4) for something outside the program" in soon.summary


RECEIVE = (45, 4, 0, 4096, 0, 0, 0)


def server(front, scheduler_from=(100, 102), front_call=(288, 3, 0, 0, 0, 0, 0), call=RECEIVE):
    """A front end, a tokenizer that waits for datagrams, a scheduler that waits for who has the front end's pipe."""
    told = Peer(101, "unix /run/tokenizer, datagrams", Missing("whoever knows its name may send", Code.SENDERS))
    asked = Peer(
        102, "unix socket:[9]", scheduler_from, ("S",) * len(scheduler_from), ("python",) * len(scheduler_from)
    )
    tokenizer = stack("recv@libc.so.6", "tokenize@program.py:5", *MAIN, syscall=call, switches=0, state="S")
    scheduler = stack(*GETS, "schedule@program.py:8", *MAIN, syscall=READ, switches=0, state="S")
    return verdict(
        process(0, stack(*front, "serve@program.py:3", *MAIN, syscall=front_call, switches=0, state="S")),
        process(1, tokenizer, peers=(told,)),
        process(2, scheduler, peers=(asked,)),
    )


def test_a_server_whose_processes_wait_for_messages_of_each_other_is_at_rest():
    found = server(ACCEPTS)
    assert (found.cause, found.confidence, found.finding) == ("not-a-hang", "low", False)
    assert "normal for a server without requests" in found.summary


@pytest.mark.parametrize(
    "changed",
    [{"front": GETS, "front_call": READ}, {"front": ACCEPTS, "scheduler_from": (880,)},
     {"front": ACCEPTS, "scheduler_from": ()}, {"front": ACCEPTS, "call": (44, 4, 0, 4096, 0, 0, 0)},
     {"front": ("wait4@libc.so.6", "poll@multiprocessing/popen_fork.py:27"), "front_call": (61, 101, 0, 0, 0, 0, 0)}],
    ids=["the front asks", "of another program", "of nobody", "it sends", "the front waits for a child"],
)  # fmt: skip
def test_a_program_is_at_rest_only_where_all_wait_for_messages_that_may_come_of_a_request(changed):
    assert server(**changed).cause != "not-a-hang"


POLL_FOR_EVER = (7, 1, 1, 0xFFFFFFFF, 0, 0, 0)


@pytest.mark.parametrize(
    ("at", "started", "seconds", "cause"),
    [
        ("unix socket:[9]", 50, 30.0, "other"),
        ("unix socket:[9]", 50, 3.0, "unknown"),
        ("unix socket:[9]", 900, 30.0, "not-a-hang"),
        ("tcp 0.0.0.0:80", 50, 30.0, "not-a-hang"),
    ],
    ids=["it was there first", "for a short time", "it came after the server", "the network can reach the server"],
)
def test_a_server_without_requests_whose_starter_waits_for_a_message_has_lost_one(at, started, seconds, cause):
    asks = stack(*GETS, "ask@program.py:5", *MAIN, syscall=READ, switches=0, state="S")
    ends = Peer(100, "unix socket:[8]", (101,), ("S",), ("python",))
    receives = ("poll@libc.so.6", "zmq_msg_recv@libzmq.so.5", "Socket.recv_json@zmq/sugar/socket.py:1075")
    waits = stack(*receives, "serve@program.py:3", *MAIN, syscall=POLL_FOR_EVER, switches=0, state="S")
    anybody = Peer(101, f"{at}, listening", Missing("any client that connects", Code.ANYBODY))
    first = process(0, asks, peers=(ends,), started=started)
    found = lasting(first, process(1, waits, peers=(anybody,), started=100), seconds=seconds)
    assert (found.cause, found.culprits) == (cause, ())
    assert ("waits for a message in" in found.summary) is (cause != "not-a-hang")


def test_who_waits_for_messages_beside_a_server_is_not_blamed_for_that():
    unnamed = Peer(101, "unix socket:[8]", Missing("the kernel does not name its other end"))
    receives = ("recv@libc.so.6", "tokenize@program.py:5", *MAIN)
    tokenizer = process(1, stack(*receives, syscall=RECEIVE, switches=0, state="S"), peers=(unnamed,))
    asked = Peer(102, "unix socket:[9]", (100, 101), ("S", "S"), ("python", "python"))
    scheduler = process(2, stack(*GETS, *MAIN, syscall=READ, switches=0, state="S"), peers=(asked,))
    for front, cause in ((ACCEPTS, "unknown"), (GETS, "other")):
        main = process(0, stack(*front, *MAIN, syscall=READ, switches=0, state="S"))
        assert lasting(main, tokenizer, scheduler).cause == cause


RESULT = ("__futex_wait@libc.so.6", "wait@threading.py:320", "result@concurrent/futures/_base.py:451")


@pytest.mark.parametrize(
    ("waits", "sender", "switches", "cause"),
    [
        (RESULT, 880, 0, "other"),
        (RESULT, 880, 1, "not-a-hang"),
        (RESULT, 100, 0, "other"),
        (JOINS, 880, 0, "unknown"),
    ],
)
def test_a_task_whose_result_is_awaited_asks_who_was_not_read(waits, sender, switches, cause):
    """Where no result is awaited, who waits for messages may just have none."""
    parent = process(0, stack(*waits, *MAIN, syscall=FUTEX, switches=0, state="S"))
    peer = Peer(101, "unix socket:[9]", (sender,), ("S",), ("python",))
    worker = process(
        1, stack(*GETS, "task@program.py:4", *MAIN, syscall=READ, switches=switches, state="S"), peers=(peer,)
    )
    assert lasting(parent, worker).cause == cause


def test_the_only_thread_of_a_forked_child_waits_for_one_of_its_parent():
    helper = stack("__futex_wait@libc.so.6", "pool@libgomp.so.1", *ENTRY, switches=0, state="S")
    waits = stack("wait4@libc.so.6", "run@program.py:9", *MAIN, syscall=(61, 101, 0, 0, 0, 0, 0), switches=0, state="S")
    child = stack("__futex_wait@libc.so.6", "acquire@threading.py:9", "run@program.py:12", *MAIN, switches=0, state="S")
    peer = Peer(100, "pid 101", (101,), ("S",), ("python",))
    two = (
        process(0, waits, helper, peers=(peer,), title="python program.py"),
        process(1, child, title="python program.py"),
    )
    found = verdict(*two)
    assert (found.cause, found.culprits) == ("fork-after-cuda", (1,))
    waits_alone = replace(two[0], threads=two[0].threads[:1])
    assert verdict(waits_alone, two[1]).cause != "fork-after-cuda", "no thread of the parent had anything"
    guard = LockWait(101, "once", 4096, Missing("the word of an initialiser does not say who runs it"))
    assert verdict(waits_alone, replace(two[1], locks=(guard,))).cause == "fork-after-cuda"
    other = verdict(two[0], replace(two[1], title="python other.py"))
    assert other.cause != "fork-after-cuda", "it was started, not forked"


@pytest.mark.parametrize(
    ("outside", "threads", "cause"),
    [("_launch@multiprocessing/popen_fork.py:71", 1, "fork-after-cuda"), ("_launch@popen_fork.py:71", 2, "unknown"),
     ("spawn_main@multiprocessing/spawn.py:122", 1, "other")],
)  # fmt: skip
def test_a_forked_child_that_waits_for_what_a_task_returns_has_no_thread_that_does_it(outside, threads, cause):
    loads = stack("poll@libc.so.6", "_try_get_data@torch/utils/data/dataloader.py:1132", *MAIN, switches=0, state="S")
    waits = stack(*RESULT, "load@program.py:4", outside, *MAIN, syscall=FUTEX, switches=0, state="S")
    other = stack("??@libwhatever.so", *ENTRY, switches=0, state="S")
    found = verdict(process(0, loads), process(1, *(waits, other)[:threads]))
    assert found.cause == cause
    assert found.culprits == {"fork-after-cuda": (1,), "other": (0, 1), "unknown": ()}[cause]


@pytest.mark.parametrize(
    ("task", "confidence"),
    [("_process_worker@concurrent/futures/process.py:256", "medium"), ("serve@program.py:8", "low")],
)
def test_a_forked_child_does_not_rest_inside_of_a_task(task, confidence):
    """Of a word of memory nobody knows what it stands for: whoever waits for it may have nothing to do."""
    waits = ("syscall@libc.so.6", "absl::Mutex::Block@libtensorflow_framework.so.2", "run@session.py:3")
    child = stack(*waits, task, "_launch@multiprocessing/popen_fork.py:71", *MAIN, syscall=FUTEX, switches=0, state="S")
    word = LockWait(101, "futex", 0x70, Missing("no frame names what it waits for"), still=True)
    parent = stack("read@libc.so.6", "main@program.py:4", *MAIN, syscall=READ, switches=3, state="S")
    found = verdict(process(0, parent), process(1, child, locks=(word,), handlers=(2,), python="3.11"))
    assert (found.cause, found.confidence, found.culprits) == ("fork-after-cuda", confidence, (1,))


def listening_loop(*frames, more=(), clients=()):
    loop = stack("epoll_wait@libc.so.6", *frames, "clone3@libc.so.6", syscall=POLL_FOR_EVER, switches=0, state="S")
    port = Peer(100, "tcp 127.0.0.1:80, listening and more", Missing("any client", Code.ANYBODY))
    return process(0, loop, *more, peers=(port,), clients=clients)


POLL_FOR_EVER = (232, 4, 1, 128, 0xFFFFFFFF, 0, 0)
PARKED = ("syscall@libc.so.6", "parking_lot_core::thread_parker::imp::ThreadParker::futex_wait@engine")


@pytest.mark.parametrize(
    ("loop", "more"),
    [
        (("mio::poll::Poll::poll@engine",), (stack(*PARKED, "tokio::runtime::park::Inner::park@engine", "main@engine",
                                                   syscall=FUTEX, switches=0, state="S"),)),
        (("runtime.netpoll@engine", "runtime.findRunnable@engine", "runtime.mcall@engine"), ()),
        (("uv__io_poll@node", "uv_run@node", "node::SpinEventLoopInternal@node"), ()),
    ],
    ids=["tokio", "Go", "libuv"],
)  # fmt: skip
def test_run_times_whose_loop_waits_for_clients_are_at_rest(loop, more):
    found = verdict(listening_loop(*loop, more=more))
    assert (found.cause, found.confidence) == ("not-a-hang", "low")
    assert "waits for clients" in found.summary


def test_threads_of_libraries_alone_do_not_tell_whether_anything_hangs():
    loop = ("uv__io_poll@node", "uv_run@node", "node::SpinEventLoopInternal@node")
    found = verdict(replace(listening_loop(*loop), peers=()))
    assert (found.cause, found.finding, bool(found.decided_by)) == ("unknown", False, True)


def test_a_loop_that_waits_for_clients_beside_one_who_waits_or_computes_may_not_rest():
    waits = stack("__lll_lock_wait@libc.so.6", "pthread_mutex_lock@libc.so.6", "put@engine", syscall=FUTEX, switches=0)
    loop = ("mio::poll::Poll::poll@engine",)
    assert verdict(listening_loop(*loop, more=(waits,))).cause != "not-a-hang"
    asked = (WaitingClient("127.0.0.1:80", "10.0.0.5:51234", 6.0),)
    assert "waits for clients" not in verdict(listening_loop(*loop, clients=asked)).summary


def test_a_forked_child_that_waits_for_a_promise_has_no_thread_that_keeps_it():
    gets = (
        "syscall@libc.so.6",
        "std::__future_base::_State_baseV2::wait@ext.so",
        "std::__basic_future<long>::_M_get_result@ext.so",
    )
    child = stack(
        *gets,
        "read@program.py:4",
        "_launch@multiprocessing/popen_fork.py:71",
        *MAIN,
        syscall=FUTEX,
        switches=0,
        state="S",
    )
    found = verdict(process(0, stack("wait4@libc.so.6", *MAIN, switches=0, state="S")), process(1, child))
    assert (found.cause, found.culprits) == ("fork-after-cuda", (1,))


@pytest.mark.parametrize(
    ("call", "switches", "forked"),
    [(FUTEX, 0, True), ((230, 1, 0, 0, 0, 0, 0), 24, False), (FUTEX, 24, False), ((73, 3, 2, 0, 0, 0, 0), 0, False)],
)
def test_a_forked_child_that_asks_for_a_lock_again_and_again_was_left_none(call, switches, forked):
    asks = ("clock_nanosleep@libc.so.6", "acquire@threading.py:9", "cached@program.py:7")
    child = stack(*asks, "_launch@multiprocessing/popen_fork.py:71", *MAIN, syscall=call, switches=switches, state="S")
    works = stack("compute@program", "main@program", state="R", cpu=0.5, switches=9)
    assert (verdict(process(0, works), process(1, child)).cause == "fork-after-cuda") is forked


@pytest.mark.parametrize(("cpu", "cause"), [(0.15, "not-a-hang"), (0.004, "unknown")])
def test_who_asks_for_the_lock_of_a_file_again_and_again_had_it_where_it_used_a_processor(cpu, cause):
    asks = ("clock_nanosleep@libc.so.6", "BaseFileLock.acquire@filelock/_api.py:1037", "cached@program.py:7", *MAIN)
    works = stack("compute@program", "main@program", state="R", cpu=0.5, switches=9)
    tries = stack(*asks, syscall=(230, 1, 1, 0, 0, 0, 0), switches=96, sleeps=0.04, state="S", cpu=cpu)
    assert verdict(process(0, works), process(1, tries)).cause == cause


JOINED = ("wait@multiprocessing/popen_fork.py:43", "join@multiprocessing/process.py:149")
WAITS = "wait@threading.py:363"


@pytest.mark.parametrize(
    ("frames", "idle"),
    [
        ((*JOINED, "run_data_parallel_controller_process@data_parallel_controller.py:614"), True),
        ((*JOINED, "main@train.py:3"), False),
        ((WAITS, "get@ComfyUI/execution.py:1259", "prompt_worker@ComfyUI/main.py:342"), True),
        ((WAITS, "run@ComfyUI/nodes.py:9", "prompt_worker@ComfyUI/main.py:342"), False),
    ],
)
def test_an_engine_is_idle_only_where_it_waits_for_work(frames, idle):
    assert judge(job(rank(0, stack(*frames)))).processes[0].idle is idle


@pytest.mark.parametrize(("cpu", "cause"), [(0.2, "not-a-hang"), (0.0, "unknown")])
def test_a_native_thread_that_is_joined_works_or_not(cpu, cause):
    joins = stack(
        "__futex_wait@libc.so.6", "std::thread::join@libstdc++.so.6", "main@program", syscall=FUTEX, switches=0
    )
    works = stack("compute@program", "run@program", *ENTRY, state="R" if cpu else "S", cpu=cpu, switches=9)
    wait = LockWait(100, "join", 4096, 110, still=True)
    assert verdict(process(0, joins, works, locks=(wait,))).cause == cause


def test_a_native_thread_that_is_joined_works_also_where_a_load_leaves_it_little():
    joins = stack("__futex_wait@libc.so.6", "pthread_join@libc.so.6", "main@program", syscall=FUTEX, switches=0)
    works = stack("compute@program", "run@program", *ENTRY, state="R", cpu=0.04, switches=9)
    wait = LockWait(100, "join", 4096, 110, still=True)
    assert verdict(process(0, joins, works, locks=(wait,))).cause == "not-a-hang"


@pytest.mark.parametrize(
    ("call", "left", "cause"),
    [("std::future<double>::get", 3, "not-a-hang"), ("std::future<double>::get", 0, "unknown"),
     ("std::future<double>::wait_for", 3, "unknown")],
)  # fmt: skip
def test_a_join_that_was_over_in_the_second_copy_got_its_thread(call, left, cause):
    calls = ("__futex_wait@libc.so.6", "__pthread_clockjoin_ex@libc.so.6", f"{call}@program", "main@program")
    assert verdict(process(0, stack(*calls, left=left, switches=9, cpu=0.1, state="R"))).cause == cause


@pytest.mark.parametrize(("switches", "blamed"), [(5, False), (0, True)])
def test_a_joined_thread_that_has_ended_is_blamed_only_where_who_joins_was_not_woken(switches, blamed):
    """It was woken: by the end of that thread, and joins the next one."""
    joins = stack("__futex_wait@libc.so.6", "pthread_join@libc.so.6", "main@program", syscall=FUTEX, switches=switches)
    wait = LockWait(100, "join", 4096, 110, gone=True, still=True)
    found = verdict(process(0, joins, locks=(wait,)))
    assert ("has ended" in found.summary or found.cause == "other", found.finding) == (blamed, blamed)


@pytest.mark.parametrize(("left", "cause"), [(3, "not-a-hang"), (0, "unknown")])
def test_a_native_thread_that_is_joined_and_got_its_lock(left, cause):
    joins = stack(
        "__futex_wait@libc.so.6", "std::thread::join@libstdc++.so.6", "main@program", syscall=FUTEX, switches=0
    )
    locks = stack(
        "futex_wait@libc.so.6", "pthread_mutex_lock@libc.so.6", "run@program", *ENTRY, state="S", left=left, cpu=0
    )
    wait = LockWait(100, "join", 4096, 110, still=True)
    assert verdict(process(0, joins, locks, locks=(wait,))).cause == cause


@pytest.mark.parametrize(("first", "blamed"), [("AsyncGather", (1, 2)), ("AsyncAllgather", (0,))])
def test_who_is_past_an_operation_that_one_rank_collects_may_have_done_its_part(first, blamed):
    name = {"AsyncGather": "gather", "AsyncAllgather": "all_gather"}[first]
    ranks = (gloo(0, "AsyncBarrier", "barrier"), gloo(1, first, name), gloo(2, first, name))
    found = judge(job(*ranks)).verdict
    assert (found.cause, found.culprits) == ("collective-mismatch", blamed)


def mpi(number, call):
    return rank(number, stack("opal_progress@libopen-pal.so.40", f"{call}@libmpi.so.40", *MAIN, state="R", cpu=0.4))


def test_a_communicator_is_made_by_all_of_the_one_that_it_comes_from():
    merges = mpi(0, "PMPI_Intercomm_merge"), mpi(1, "PMPI_Intercomm_merge")
    assert judge(job(*merges, mpi(2, "PMPI_Barrier"))).verdict.culprits == (2,)
    splits = mpi(0, "PMPI_Comm_split"), mpi(1, "PMPI_Comm_split")
    found = judge(job(*splits, mpi(2, "PMPI_Barrier"))).verdict
    assert (found.cause, found.confidence, found.culprits) == ("collective-mismatch", "low", (2,))
    away = rank(2, stack("read@libc.so.6", "load@program.py:4", *MAIN, state="S", switches=0))
    assert judge(job(*splits, away)).verdict.cause == "init-rendezvous"


@pytest.mark.parametrize(("call", "confidence"), [("PMPI_Init", "high"), ("PMPI_Intercomm_merge", "low")])
def test_a_rank_that_has_ended_need_not_be_a_member_of_what_some_ranks_make(call, confidence):
    found = judge(job(mpi(1, call), mpi(3, call), world_size=4, absent=(0, 2))).verdict
    assert (found.cause, found.confidence, found.absent) == ("init-rendezvous", confidence, (0, 2))


def test_a_thread_that_yields_until_memory_changes_does_no_work():
    joins = stack("__futex_wait@libc.so.6", "pthread_join@libc.so.6", "main@program", syscall=FUTEX, switches=0)
    polls = stack("sched_yield@libc.so.6", "Spin::lock@program", "run@program", *ENTRY, state="R", cpu=0.9, switches=9)
    owner = stack("pthread_cond_wait@libc.so.6", "take@program", *ENTRY, syscall=FUTEX, switches=0)
    waits = (LockWait(100, "join", 4096, 110, still=True),)
    found = verdict(process(0, joins, polls, owner, locks=waits))
    assert (found.cause, found.finding) == ("unknown", False)
    assert found.decided_by is not None
    computes = stack("compute@program", "run@program", *ENTRY, state="R", cpu=0.9, switches=9)
    assert verdict(process(0, joins, polls, computes, locks=waits)).cause == "not-a-hang"


@pytest.mark.parametrize(
    ("sleeps", "switches", "wrote", "cause"),
    [
        (6e-7, 9000, 0, "unknown"),
        (0.05, 9000, 0, "not-a-hang"),  # it asked for more
        (6e-7, 9, 0, "not-a-hang"),  # what is left of a longer sleep
        (6e-7, 9000, 1 << 20, "not-a-hang"),
    ],
    ids=["moments", "longer", "rest of a longer one", "writes"],
)
def test_who_sleeps_for_moments_until_memory_changes_does_no_work(sleeps, switches, wrote, cause):
    commits = ("clock_nanosleep@libc.so.6", "nanosleep@libc.so.6", "commit@program", "main@program")
    activity = Activity(1.2, written_bytes=wrote, own_bytes=wrote)
    writer = stack(*commits, sleeps=sleeps, switches=switches, cpu=0.2, state="S")
    waits = stack("wait4@libc.so.6", "main@program", switches=0, state="S")
    found = verdict(process(0, waits), process(1, writer, activity=activity), process(2, writer, activity=activity))
    assert (found.cause, found.finding) == (cause, False)


def consumer(function, mark):
    return stack("clock_nanosleep@libc.so.6", "time_sleep@python3", f"{function}@consume.py:13", *MAIN, state="S",
                 syscall=(230, 1, 1, 1, 0, 0, 0), sleeps=0.5, switches=4, cpu=0.001, marks=(7, mark))  # fmt: skip


@pytest.mark.parametrize(
    ("function", "marks", "cause"),
    [("worker", (1, 2), "not-a-hang"), ("worker", (1, 1), "unknown"), ("report_status", (1, 2), "unknown")],
    ids=["it goes on", "it does not", "it only reports"],
)
def test_who_waits_for_the_only_other_thread_is_fed_while_that_one_goes_on(function, marks, cause):
    joins = stack("sem_wait@libc.so.6", "wait@threading.py:327", "Queue.join@queue.py:90", *MAIN, state="S",
                  syscall=FUTEX, switches=0, marks=(3,))  # fmt: skip
    was, now = (live(process(0, joins, consumer(function, mark))) for mark in marks)
    earlier = replace(was, taken_at=1000.0)
    assert judge(replace(now, taken_at=1030.0, earlier=(earlier,))).verdict.cause == cause


@pytest.mark.parametrize(("switches", "finding"), [(3, False), (0, True)])
def test_an_open_cause_is_no_finding_while_somebody_got_something(switches, finding):
    asks = stack("recv@libc.so.6", "ask@program.py:5", *MAIN, syscall=READ, switches=switches)
    found = verdict(process(0, asks), process(1, stack("??@libwhatever.so")))
    assert (found.cause, found.finding) == ("unknown", finding)


@pytest.mark.parametrize(("switches", "cause", "finding"), [(0, "missing-rank", True), (7, "unknown", False)])
def test_a_rank_that_gets_its_data_piece_by_piece_is_not_surely_missing(switches, cause, finding):
    reads = stack("read@libc.so.6", "load@program.py:5", *MAIN, syscall=READ, switches=switches, state="S")
    found = judge(job(gloo_reducing(0), rank(1, reads), gloo_reducing(2), apart=1.2)).verdict
    assert (found.cause, found.finding) == (cause, finding)
    if not finding:
        assert "for rank 1, which waits, and was woken while gdbext watched, in load" in found.summary
        assert found.decided_by is not None


@pytest.mark.parametrize(
    ("call", "state", "finding"), [("recv", "R", False), ("recv", "S", False), ("pthread_mutex_lock", "S", True)]
)
def test_an_open_cause_is_no_finding_while_the_thread_runs_or_has_asked_for_nothing(call, state, finding):
    """Beside a load it gets so little of a processor that nobody would call it busy."""
    runs = stack(f"{call}@libc.so.6", "half_sent@program.py:5", *MAIN, state=state, cpu=0.05, switches=3000)
    found = verdict(process(0, runs))
    assert (found.cause, found.finding) == ("unknown", finding)


def on_queue(number, call, other, switches=0):
    """A process in a call of a POSIX message queue, which process `other` has open too."""
    syscall = ({"send": 242, "receive": 243}[call], 3, 0, 64, 0, 0, 0)
    calls = (f"__mq_timed{call}@libc.so.6", "talk@program", "main@program")
    wait = stack(*calls, syscall=syscall, switches=switches, state="S")
    peer = Peer(100 + number, f"message queue /q{number} [{number}]", (100 + number, other), ("S", "S"), ("a", "a"))
    return process(number, wait, peers=(peer,))


def test_two_processes_whose_message_queues_are_both_full_wait_for_each_other():
    found = verdict(on_queue(0, "send", 101), on_queue(1, "send", 100))
    assert (found.cause, found.culprits, found.finding) == ("other", (0, 1), True)
    assert "message queue" in " ".join(item.text for item in found.evidence)


def test_a_message_queue_that_moves_is_healthy():
    works = process(1, stack("compute@program", "main@program", state="R", cpu=0.3, switches=90))
    assert verdict(on_queue(0, "receive", 101, switches=50), works).cause == "not-a-hang"
    in_turn = on_queue(0, "send", 101, switches=50), on_queue(1, "receive", 100, switches=50)
    assert verdict(*in_turn).cause == "not-a-hang"


REGION = ("run._omp_fn.0@program", "GOMP_parallel@libgomp.so.1", "run@program", "main@program")
IN_TEAM = ("futex_wait@libc.so.6", "??@libgomp.so.1", "GOMP_barrier@libgomp.so.1")


@pytest.mark.parametrize(
    ("inside", "switches", "cause"),
    [(("compute@program",), 20, "not-a-hang"), (("compute@program",), 0, "unknown"), (IN_TEAM, 0, "unknown")],
)
def test_who_calls_a_team_of_threads_does_its_own_share(inside, switches, cause):
    """Its state was read a moment later, when it slept again."""
    caller = stack(*inside, *REGION, syscall=FUTEX, switches=switches, cpu=0.07, state="S")
    assert verdict(process(0, caller)).cause == cause


def test_a_share_is_known_without_its_number_too():
    """As gdb names it where a program has no debug information."""
    share = stack("calculate@program", "run._omp_fn@program", *REGION[1:], state="R", cpu=0.3, switches=20)
    assert judge_thread(share).kind == "native-compute"


def test_who_runs_an_initialiser_does_not_wait_for_it():
    once = ("__pthread_once_slow@libc.so.6", "std::call_once@program", "run@program", *ENTRY)
    works = judge_thread(stack("compute@program", *once, state="R", cpu=0.9))
    waits = judge_thread(stack("__futex_wait@libc.so.6", *once, state="S", cpu=0.0))
    assert (works.kind, waits.kind, waits.rule) == ("native-compute", "mutex", "os-once")


def test_a_child_that_opens_a_named_pipe_which_nobody_reads_holds_up_who_spawns_it():
    spawns = ("clone3@libc.so.6", "__spawnix@libc.so.6", "posix_spawn@libc.so.6", "compress@program.py:5")
    parent = stack(*spawns, *MAIN, syscall=(435, 1, 88, 0, 0, 0, 0), switches=0, state="D")
    child = stack("__open64_nocancel@libc.so.6", "__spawni_child@libc.so.6", syscall=(257, 1, 2, 65), switches=0)
    started = Peer(100, "pid 101", (101,), ("S",), ("python",))
    two = process(0, parent, peers=(started,)), process(1, child, peers=(Peer(101, UNOPENED, ()),))
    found = verdict(*two)
    assert (found.cause, found.confidence, found.culprits, found.victims) == ("other", "medium", (1,), (0,))
    assert "no process has opened it to read. The call waits until one does." in found.summary
    works = replace(two[1], peers=(), threads=(stack("deflate@gzip", id="101", lwp=101, state="R", cpu=0.9),))
    assert verdict(two[0], works).cause != "other"


@pytest.mark.parametrize(("asks", "said"), [("rpc_sync", True), ("step", True), ("pthread_mutex_lock", False)])
def test_an_answer_may_be_on_its_way(asks, said):
    """A healthy job between two requests: nobody was woken in the few moments between the two copies."""
    file = {"rpc_sync": "torch/distributed/rpc/api.py:842", "step": "engine.py:8"}.get(asks, "libc.so.6")
    asking = stack("__futex_wait@libc.so.6", f"{asks}@{file}", *MAIN, syscall=FUTEX, switches=0)
    waiting = stack("__futex_wait@libc.so.6", "wait@threading.py:327", "serve@program.py:5", *MAIN, syscall=FUTEX)
    waiting = replace(waiting, state="R")  # on its way
    found = verdict(process(0, asking), process(1, waiting))
    assert (found.cause, "not clear yet" in found.summary) == ("unknown", said), found.summary


RECEIVES = ("recv@libc.so.6", "sock_recv_impl@python3")
RECV = (45, 7, 1, 1, 0, 0, 0)


def reads(number, function, *threads, unowed=True):
    file, back = (f"tcp 127.0.0.1:{one} - 127.0.0.1:{1 - one}" for one in (number, 1 - number))
    peer = Peer(100 + number, file, (101 - number,), ("S",), ("python",), unowed=unowed, back=back)
    reader = stack(*RECEIVES, function, *MAIN, syscall=RECV, state="S", switches=0)
    return process(number, reader, *threads, peers=(peer,))


@pytest.mark.parametrize("unowed", [True, False])
def test_two_that_read_from_each_other_rest_where_no_answer_is_owed(unowed):
    """A client that the server has spoken to last, and the server, which waits for its next question; and who may be
    asked from outside."""
    accepts = stack(*ACCEPTS, "listen@work.py:3", state="S", switches=0, syscall=(43, 3, 0, 0, 0, 0, 0))
    found = verdict(
        reads(0, "subscribe@work.py:4", unowed=unowed), reads(1, "publish@work.py:7", accepts, unowed=unowed)
    )
    assert (found.cause, found.finding) == (("not-a-hang", False) if unowed else ("other", True))


def test_where_nobody_else_can_reach_them_it_is_not_clear_whether_two_that_read_from_each_other_rest():
    found = verdict(reads(0, "subscribe@work.py:4"), reads(1, "publish@work.py:7"))
    assert (found.cause, found.finding) == ("unknown", False)
    assert "wait for messages of each other alone" in found.summary
    asks = lasting(reads(0, "HttpSocket.get@client.py:170"), reads(1, "serve@work.py:7"))
    assert (asks.cause, asks.culprits) == ("other", (1,)), asks.summary
    assert "for the answer to a request" in asks.summary


ZMQ = ("poll@libc.so.6", "zmq_msg_recv@libzmq.so.5")


def test_who_waits_for_a_message_outside_of_any_loop_waits_for_this_one():
    receives = stack(*ZMQ, "start@work.py:4", *MAIN, syscall=(7, 1, 1, 0xFFFFFFFF, 0, 0, 0), state="S", switches=0)
    takes = stack("epoll_wait@libc.so.6", "zmq::epoll_t::loop@libzmq.so.5", state="S", switches=0)
    listens = Peer(110, "tcp 127.0.0.1:1, listening and more", Missing("anybody", Code.ANYBODY))
    serves = [process(number, receives, takes, peers=(replace(listens, thread=110 + number),)) for number in (0, 1)]
    assert verdict(*serves).cause == "not-a-hang"
    once = [replace(one, loops_in_text=(LoopInText(100 + one.rank, LoopKind.NONE),)) for one in serves]
    assert verdict(*once).cause == "unknown"
    found = lasting(*once)
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", (0, 1)), found.summary
    assert "outside of any loop, for one message" in found.summary


@pytest.mark.parametrize("other", ["reads as well", "is elsewhere"])
def test_whoever_is_fed_by_a_thread_that_reads_from_a_connection_at_rest_rests(other):
    """Who has sent a part of an answer and is elsewhere may owe the rest of it."""
    reader = stack(*RECEIVES, "read_all@work.py:4", "run@threading.py:982", syscall=RECV, state="S", switches=0)
    waits = stack("sem_wait@libc.so.6", "Queue.get@queue.py:171", "serve@work.py:9", *MAIN, syscall=FUTEX, state="S",
                  switches=0)  # fmt: skip
    ends = ("127.0.0.1:1", "127.0.0.1:2")
    file, back = (f"tcp {' - '.join(one)}" for one in (ends, reversed(ends)))
    peer = Peer(110, file, (101,), ("S",), ("python",), unowed=True, back=back)
    back = replace(peer, thread=111, file=back, back=file, processes=(100,))
    peers = (back,) if other == "reads as well" else ()
    accepts = stack(*ACCEPTS, "listen@work.py:2", "run@threading.py:982", syscall=(288, 3, 0, 0, 0, 0, 0), state="S",
                    switches=0)  # fmt: skip
    others = (accepts,) if peers else ()
    found = verdict(process(0, waits, reader, *others, peers=(peer,)), process(1, waits, reader, peers=peers))
    assert (found.cause == "not-a-hang") is (other == "reads as well")


MEETS = stack("ompi_sync_wait_mt@libopen-pal.so.40", "PMPI_Barrier@libmpi.so.40", "barrier@bench.py:39", *MAIN,
              state="R", switches=90, cpu=0.9, still=1, marks=(3, 4))  # fmt: skip


def test_ranks_that_run_in_one_call_of_mpi_may_call_it_again_and_again():
    """The call shows no return: the same stack may be another barrier."""
    ranks = [rank(number, replace(MEETS, id=str(number), lwp=number)) for number in (0, 1)]
    once = replace(job(*ranks, apart=0.5), taken_at=0.0)
    found = judge(once).verdict
    assert (found.cause, found.finding, bool(found.decided_by)) == ("unknown", False, True)
    later = replace(once, taken_at=21.0, earlier=(once,))
    found = judge(later).verdict
    assert found.finding and found.summary.endswith("or the step takes longer than gdbext looked.")
    moved = [replace(one, threads=(replace(one.threads[0], marks=(3, 5)),)) for one in ranks]
    assert judge(replace(later, processes=tuple(moved))).verdict.cause == "not-a-hang"


def test_event_loops_that_use_a_good_part_of_a_core_work_for_who_waits():
    waits = stack("pthread_cond_wait@libc.so.6", "receiver::wait@actor", "main@actor", syscall=FUTEX, switches=0,
                  state="S")  # fmt: skip
    loop = ("asio::detail::posix_event::wait@actor", "asio::detail::scheduler::run@actor", *ENTRY)
    for cpu, cause in ((0.06, "not-a-hang"), (0.001, "unknown")):
        loops = [stack(*loop, syscall=FUTEX, switches=900, state="S", cpu=cpu) for _ in range(8)]
        assert verdict(process(0, waits, *loops)).cause == cause


def test_who_runs_one_command_after_the_other_is_at_work():
    asks = stack(*GETS, "ask@program.py:5", *MAIN, syscall=READ, switches=0, state="S")
    builds = ("wait4@libc.so.6", "os_waitpid@python3", "Popen.wait@/usr/lib/python3.11/subprocess.py:1264")
    idle = stack(*ACCEPTS, *MAIN, syscall=(288, 3, 0, 0, 0, 0, 0), switches=0, state="S")
    handler = stack(*builds, "build@server.py:9", "do_POST@server.py:3", syscall=(61, 9, 0, 0, 0, 0, 0), state="S",
                    switches=3)  # fmt: skip
    ends = Peer(100, "tcp 127.0.0.1:1 - 127.0.0.1:2", (101,), ("S",), ("python",))
    for replaced, cause in ((1, "not-a-hang"), (0, "unknown")):
        server = process(1, idle, handler, activity=Activity(2.0, replaced=replaced))
        assert verdict(process(0, asks, peers=(ends,)), server).cause == cause


def test_a_rank_of_which_only_python_functions_were_read_may_well_run():
    copies = rank(1, stack("copy_to_gpu@utils.py:142", "execute_model@worker.py:9"), state="partial")
    found = judge(job(gloo_reducing(0), copies, apart=128.0)).verdict
    assert (found.cause, found.finding) == ("unknown", False)
    assert "A long step looks like an endless loop" in found.summary
    assert judge(job(gloo_reducing(0), replace(copies, state="ok"), apart=128.0)).verdict.cause == "missing-rank"


ASKS = (
    "recv@libc.so.6",
    "SocketIO.readinto@socket.py:706",
    "HTTPConnection.getresponse@http/client.py:1386",
    "urlopen@urllib/request.py:216",
)
IN_POOL = (
    "sem_wait@libc.so.6",
    "Queue.get@queue.py:171",
    "ConnectionPool.checkout@pool.py:92",
    "Handler.do_GET@http.py:128",
)


@pytest.mark.parametrize("inside", [True, False])
def test_a_request_to_its_own_process_that_is_answered_by_a_thread_which_waits(inside):
    asks = stack(*ASKS, *MAIN, syscall=RECV, state="S", switches=0)
    polls = stack("poll@libc.so.6", "select@selectors.py:415", "BaseServer.serve_forever@socketserver.py:233",
                  syscall=POLL, state="S", switches=5, cpu=0.0)  # fmt: skip
    answers = stack(*(IN_POOL if inside else IN_POOL[:3]), syscall=FUTEX, state="S", switches=0)
    own = Peer(100, "tcp 127.0.0.1:1 - 127.0.0.1:2", (100,), ("S",), ("python",))
    found = lasting(process(0, asks, polls, answers, peers=(own,)))
    assert found.finding is inside, found.summary
    assert not inside or "for the answer to a request to the same process" in found.summary
