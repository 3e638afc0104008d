"""The merged tree: shared callers once, with the ranks that go through them."""

from dataclasses import replace

from gdbext.analysis.stacks.merged_stacks import LONGEST_STACK, merge
from gdbext.analysis.verdict.judge import judge
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.tasks import PythonTask
from tests.unit.stacks import ENTRY, frame, inside, job, nameless, rank, stack, syncing

MAIN = Frame("main", "/opt/engine")


def chain(node):
    names = [node.function]
    while node.children:
        node = node.children[0]
        names.append(node.function)
    return names


def test_shared_callers_are_joined_and_ranks_part_where_the_calls_do():
    tree = merge(job(syncing(0), inside(1, "cudaFree@libcudart.so.12"), syncing(2), syncing(5)))
    (main,) = tree.roots
    assert (main.function, main.ranks, main.threads) == ("main", (0, 1, 2, 5), 4)
    (decode,) = main.children
    assert [(child.function, child.ranks) for child in decode.children] == [
        ("cudaStreamSynchronize", (0, 2, 5)),
        ("cudaFree", (1,)),
    ]
    assert tree.counts == "rank"


def test_helpers_and_idle_pools_are_counted_only():
    snapshot = job(
        rank(
            0,
            stack("read@libc.so.6", "serve@engine", "main@engine", id="1"),
            stack("poll@libc.so.6", "??@libcuda.so.1", *ENTRY, id="2"),
            stack("pthread_cond_wait@libc.so.6", "Pool::work@engine", *ENTRY, id="3"),
        )
    )
    tree = merge(snapshot, judge(snapshot).processes)
    assert chain(tree.roots[0]) == ["main", "serve", "read"]
    assert tree.folded == {"CUDA driver events": 1, "waiting for work": 1}


def test_the_deciding_thread_is_never_folded():
    tree = merge(nameless(stack("pthread_cond_wait@libc.so.6", "Engine::wait@engine", "main@engine")))
    assert chain(tree.roots[0]) == ["main", "Engine::wait", "pthread_cond_wait"]


def test_processes_without_rank_are_counted_by_index():
    tree = merge(nameless(stack("read@libc.so.6", "main@engine")))
    assert (tree.counts, tree.roots[0].ranks) == ("process", (0,))


def test_nameless_frames_of_different_libraries_stay_apart():
    tree = merge(job(rank(0, stack("??@libcuda.so.1", "main@e")), rank(1, stack("??@libnccl.so.2", "main@e"))))
    assert len(tree.roots[0].children) == 2


def test_the_line_in_the_c_library_is_chance_and_the_one_in_the_engine_is_not():
    frames = [Frame("clock_gettime", "/lib/libc.so.6", file="x.c", line=line) for line in (42, 43)]
    ranks = [rank(number, ThreadStack("1", (frame, MAIN))) for number, frame in enumerate(frames)]
    assert len(merge(job(*ranks)).roots[0].children) == 1
    moved = [replace(frame, module="/opt/engine") for frame in frames]
    ranks = [rank(number, ThreadStack("1", (frame, MAIN))) for number, frame in enumerate(moved)]
    assert len(merge(job(*ranks)).roots[0].children) == 2


def test_a_recursion_is_cut_at_the_inner_end():
    tree = merge(nameless(stack("read@libc.so.6", *["walk@engine"] * 5000, "main@engine")))
    names = chain(tree.roots[0])
    assert (names[0], len(names)) == ("main", LONGEST_STACK)


def test_equal_tasks_of_event_loops_are_one_branch():
    def loop(number, *names):
        waits = tuple(
            PythonTask(7, (frame("Event.wait@asyncio/locks.py:213"), frame(f"{name}@a.py:4"))) for name in names
        )
        return rank(number, stack("epoll_wait@libc.so.6", "main@engine"), tasks=(*waits, PythonTask(7, ())))

    tree = merge(job(loop(0, "respond", "respond"), loop(1, "respond", "serve")))
    assert [(one.function, one.ranks, one.threads) for one in tree.tasks] == [
        ("respond", (0, 1), 3),
        ("serve", (1,), 1),
    ]
    assert tree.tasks[0].children[0].function == "Event.wait"
