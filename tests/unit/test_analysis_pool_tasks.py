"""Tasks of pools that wait inside: the process is not at rest, and a pool whose tasks all wait for results is
starved."""

import pytest

from gdbext.model.codes import Code
from gdbext.model.locks import LISTENING, Peer
from gdbext.model.missing import Missing
from tests.unit.stacks import stack
from tests.unit.test_analysis_at_work import FUTEX, MAIN, SELECTS, process, verdict

EVER, LIMITED = (232, 3, 1, 2, 0xFFFFFFFF, 0, 0), (232, 3, 1, 2, 5000, 0, 0)
LOOPS = ("BaseEventLoop._run_once@asyncio/base_events.py:1884", "BaseEventLoop.run_forever@asyncio/base_events.py:607")
OLDER = tuple(one.replace("BaseEventLoop.", "") for one in LOOPS)  # as Python 3.10 names them
WORKER = ("_worker@concurrent/futures/thread.py:83", "Thread.run@threading.py:982")
TASK = ("prepare@engine.py:4", "_WorkItem.run@concurrent/futures/thread.py:58", *WORKER)
WAITS = ("do_futex_wait@libc.so.6", "Condition.wait@threading.py:327")
RESULT = (*WAITS, "Future.result@concurrent/futures/_base.py:451")
NEXT = ("do_futex_wait@libc.so.6", "_queue_SimpleQueue_get_impl@python3", *WORKER)
ANYBODY = Missing("it listens: its other end is any client that connects", Code.ANYBODY)


def asleep(*frames, call=FUTEX, switches=0):
    return stack(*frames, syscall=call, switches=switches, state="S")


def server(*workers, loops=LOOPS, file=f"tcp 127.0.0.1:80{LISTENING}", call=EVER):
    """An event loop that takes clients, and threads beside it."""
    loop = asleep(*SELECTS, *loops, *MAIN, call=call)
    return verdict(process(0, loop, *workers, peers=(Peer(thread=100, file=file, processes=ANYBODY),)))


@pytest.mark.parametrize("loops", [LOOPS, OLDER])
def test_a_pool_whose_tasks_all_wait_for_results_is_starved(loops):
    found = server(*[asleep(*RESULT, *TASK)] * 2, loops=loops)
    assert (found.cause, found.confidence, found.finding, found.culprits) == ("lock-order-deadlock", "low", True, (0,))
    assert "No thread is left that could run another task" in found.summary


CALLS = (*RESULT, "Actors.call@engine.py:9")


def test_a_pool_whose_tasks_and_starter_all_wait_for_results_is_starved_for_good():
    """Whoever sets a result is a thread of the same process: none is left."""
    client = process(1, asleep("poll@libc.so.6", "recv_string@zmq/sugar/socket.py:968", *MAIN, call=LIMITED))
    found = verdict(process(0, asleep(*CALLS, *MAIN), asleep(*RESULT, *TASK)), client)
    assert (found.cause, found.confidence, found.culprits) == ("lock-order-deadlock", "medium", (0,))
    assert "is the only thread of its executors, and waits inside of a task for a result" in found.summary
    beside = asleep("epoll_wait@libc.so.6", "take_answers@engine.py:3", call=EVER)
    for other in (beside, asleep(*RESULT, switches=2)):
        alone = verdict(process(0, asleep(*CALLS, *MAIN), asleep(*RESULT, *TASK), other), client)
        assert (alone.cause, alone.confidence) != ("lock-order-deadlock", "medium"), "it may set the result"


NOT_YET = ("unknown", False)


@pytest.mark.parametrize(
    ("workers", "more"),
    [
        ([asleep(*RESULT, *TASK)], {}),  # the executor may start another thread
        ([asleep(*RESULT, *TASK), asleep(*NEXT)], {}),
        ([asleep(*RESULT, *TASK)] * 2, {"file": f"tcp 127.0.0.1:80{LISTENING} and more"}),
        ([asleep(*RESULT, *TASK)] * 2, {"call": LIMITED}),
        ([asleep(*WAITS, *TASK)], {}),
    ],
)
def test_a_task_that_waits_inside_of_its_program_leaves_open_whether_the_server_is_idle(workers, more):
    found = server(*workers, **more)
    assert (found.cause, found.finding, bool(found.decided_by)) == (*NOT_YET, True)
    assert "inside of a task" in found.summary


@pytest.mark.parametrize(
    "worker",
    [
        asleep(*NEXT),
        asleep(*WAITS, "Event.wait@threading.py:629", *TASK),  # told to stop some day
        asleep(*WAITS, "Queue.get@queue.py:171", *TASK),
        asleep(*RESULT, *TASK, switches=3),  # gets results
    ],
)
def test_a_server_whose_tasks_wait_for_orders_is_idle(worker):
    assert server(worker, worker).cause == "not-a-hang"
