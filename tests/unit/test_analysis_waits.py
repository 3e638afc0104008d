"""The wait-for graph: its nodes and ends, what is read off it, and pairs of looks that look alike and are not."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.analysis.view.job_view import build_view
from gdbext.analysis.waits.cycles import find_circles
from gdbext.analysis.waits.graph_builder import build
from gdbext.analysis.waits.which_cause_wins import hypotheses
from gdbext.knowledge.causes.wait_causes import CAUSES as ROWS
from gdbext.knowledge.causes.wait_kinds import LINKS, WAITS
from gdbext.knowledge.labels import WAIT_KINDS
from gdbext.model.locks import LockWait, Peer
from gdbext.model.missing import Missing
from gdbext.model.waits import ALL, ANY, NODES, STATES, STRENGTHS, Edge, Node, WaitGraph
from tests.unit.stacks import (
    DRIVER,
    ENGINE,
    frame,
    gloo_reducing,
    inside,
    job,
    nameless,
    rank,
    reducing,
    sleeping,
    stack,
    syncing,
)

LOCKS = ("__lll_lock_wait@libc.so.6", "pthread_mutex_lock@libc.so.6")
READS = ("read@libc.so.6", "receive@engine ipc.cc:9", "main@engine main.cc:9")
INIT = ("poll@libc.so.6", "bootstrapAllGather@libnccl.so.2", "ncclCommInitRank@libnccl.so.2", *ENGINE)
ABORTS = ("futex@libc.so.6", "__pthread_clockjoin_ex@libc.so.6", "??@libnccl.so.2", "ncclCommAbort@libnccl.so.2")
IDLE = ("pthread_cond_wait@libc.so.6", "std::condition_variable::wait@libstdc++.so.6", "worker@engine pool.cc:3")


def thread(lwp, *frames, **fields):
    return stack(*(frames or (*LOCKS, f"step{lwp}@engine engine.cc:{lwp}")), id=str(lwp), lwp=lwp, **fields)


def holds(lwp, owner, kind="mutex", **fields):
    return LockWait(lwp, kind, 0x1000 * lwp, owner, **fields)


def verdict(*ranks, **fields):
    return judge(job(*ranks, **fields)).verdict


def graph_of(snapshot):
    return build(build_view(snapshot, judge(snapshot).processes)).graph


def steps(found):
    """Kinds of nodes from the first that waits on."""
    return [edge.source.kind for edge in found.chain] + [found.chain[-1].target.kind] if found.chain else []


# --- the tables ---


def test_the_tables_fit_each_other():
    assert set(WAITS) <= set(WAIT_KINDS)
    assert {row.target for row in WAITS.values()} <= set(NODES)
    assert {row.strength for row in WAITS.values()} <= set(STRENGTHS)
    assert {row.needs for row in WAITS.values()} == {ALL, ANY}
    assert len({row.id for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert set(row.resources) | set(row.ends) <= set(NODES), row.id
        assert set(row.states) <= set(STATES), row.id
        assert row.most in ("low", "medium", "high")


def test_every_edge_is_of_a_known_kind():
    looks = (
        job(reducing(0), sleeping(1), reducing(2)),
        job(syncing(0), inside(1, "cudaFree@libcudart.so.12")),
        job(rank(0, stack(*INIT)), rank(1, stack(*READS)), world_size=3, absent=(2,)),
        job(rank(0, thread(1), thread(2), pid=1, locks=(holds(1, 2), holds(2, 9, gone=True)))),
    )
    for snapshot in looks:
        graph = graph_of(snapshot)
        for edge in (edge for edges in graph.edges.values() for edge in edges):
            assert edge.kind in {*WAIT_KINDS, *LINKS}
            assert edge.strength in STRENGTHS and edge.needs in (ALL, ANY)
            assert graph.nodes[edge.source.id].kind in NODES
            assert graph.nodes[edge.target.id].state in {None, *STATES}


# --- each kind of node, on a chain ---

LOCKED = rank(1, thread(7), thread(8, *READS), pid=7, locks=(holds(7, 8),))
QUEUED = thread(7, "get@/usr/lib/python3.11/queue.py:171", "f@a.py:1")
FORKED = rank(0, thread(7), pid=7, locks=(holds(7, 99, gone=True, owner_process=5),))
SETTING_UP = [rank(0, stack(*INIT)), rank(1, stack(*READS)), rank(2, stack(*INIT))]
MET = ["rank", "collective", "rank"]

CHAINS = [
    (job(reducing(0), sleeping(1), reducing(2)), MET, "external"),
    (job(gloo_reducing(0), rank(1, stack(*READS)), gloo_reducing(2)), [*MET, "peer"], "external"),
    (job(reducing(0), reducing(2), world_size=3, absent=(1,)), MET, "dead"),
    (job(reducing(0), rank(1, stack(*ENGINE, state="T"))), MET, "stopped"),
    (job(*SETTING_UP), ["rank", "rendezvous", "rank", "peer"], "external"),
    (job(reducing(0), LOCKED, reducing(2)), [*MET, "lock", "thread", "peer"], "external"),
    (job(reducing(0), rank(1, QUEUED, pid=7), reducing(2)), [*MET, "queue"], "external"),
    (job(reducing(0), rank(1, thread(7, *IDLE), pid=7), reducing(2)), [*MET, "condition"], "external"),
    (job(FORKED), ["rank", "lock", "thread"], "dead"),
    (
        nameless(thread(7, "ioctl@libc.so.6", "??@libcuda.so.1", *ENGINE, state="D", wchan="nvidia_ioctl")),
        ["rank", "driver"],
        "faulted",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("snapshot", "kinds", "state"), CHAINS)
def test_a_chain(snapshot, kinds, state):
    found = judge(snapshot).verdict
    assert steps(found) == kinds, found.summary
    assert found.root is not None and (found.root.kind, found.root.state) == (kinds[-1], state)
    assert found.chain[0].facts, "who waits is cited"


CIRCLES = [
    (job(syncing(0), inside(1, "cudaMallocHost@libcudart.so.12"), syncing(2)), {"rank", "device", "collective"}),
    (job(syncing(0), rank(1, stack(*ABORTS, *ENGINE)), syncing(2)), {"rank", "device", "communicator", "collective"}),
    (job(reducing(0), reducing(1, name="all_gather"), reducing(2)), {"rank", "collective"}),
    (job(rank(0, thread(1), thread(2), pid=1, locks=(holds(1, 2), holds(2, 1)))), {"rank", "thread", "lock"}),
    (job(rank(0, thread(1), thread(2), pid=1, locks=(holds(1, 2, "join"), holds(2, 1)))), {"rank", "thread", "lock"}),
]  # fmt: skip


@pytest.mark.parametrize(("snapshot", "kinds"), CIRCLES, ids=["device", "teardown", "mismatch", "locks", "join"])
def test_a_circle_comes_back_to_where_it_was(snapshot, kinds):
    found = judge(snapshot).verdict
    ids = [found.chain[0].source.id, *(edge.target.id for edge in found.chain)]
    assert ids[-1] in ids[:-1] and len(set(ids)) == len(ids) - 1
    assert {found.chain[0].source.kind, *(edge.target.kind for edge in found.chain)} == kinds
    assert found.root is not None and found.root.process in found.culprits


def test_ranks_that_wait_for_the_gpu_wait_for_one_that_has_no_process():
    found = verdict(syncing(0), syncing(2), world_size=3, absent=(1,))
    assert (found.cause, found.confidence, found.absent) == ("missing-rank", "medium", (1,))
    assert found.chain[-1].target.label == "rank 1 (no process)"


def test_a_wait_for_the_gpu_inside_of_a_collective_is_one_for_the_collective():
    def waiting(number, count):
        call = frame("ncclAllReduce@libnccl.so.2", count=count, **{"comm->commHash": 7})
        return rank(number, stack(*DRIVER, "cudaStreamSynchronize@libcudart.so.12", call, *ENGINE))

    found = verdict(waiting(0, 4096), waiting(1, 2048), waiting(2, 4096))
    assert (found.cause, found.culprits) == ("collective-mismatch", (1,))


# --- pairs that look alike ---


def test_an_idle_pool_and_one_that_is_deadlocked():
    pool = [thread(n, *IDLE) for n in (3, 4)]
    nobody = Missing("a condition variable has no owner")
    idle = tuple(holds(n, nobody, "condvar") for n in (3, 4))
    listens = thread(1, "epoll_wait@libc.so.6", "serve@engine server.cc:1")
    assert verdict(rank(0, listens, *pool, pid=1, locks=idle)).cause in ("unknown", "not-a-hang")
    stuck = verdict(rank(0, thread(1), thread(2), *pool, pid=1, locks=(holds(1, 2), holds(2, 1), *idle)))
    assert (stuck.cause, stuck.confidence, stuck.culprits) == ("lock-order-deadlock", "high", (0,))


def test_a_lock_that_is_held_by_who_reads_and_one_that_is_part_of_a_circle():
    reader = verdict(rank(0, thread(1), thread(2, *READS), pid=1, locks=(holds(1, 2),)))
    assert reader.cause == "unknown"
    assert verdict(rank(0, thread(1), thread(2), pid=1, locks=(holds(1, 2), holds(2, 1)))).cause != "unknown"


def test_a_loop_that_goes_on_and_a_hang():
    def at(step):
        frames = (*DRIVER, "cudaStreamSynchronize@libcudart.so.12", f"decode@e a.cc:{step}")
        return job(*(rank(n, stack(*frames)) for n in range(2)))

    assert judge(at(8), at(7)).verdict.cause == "not-a-hang"
    assert judge(at(7), at(7)).verdict.cause == "unknown"


MISMATCH = "Detected mismatch between collectives on ranks. Rank 0 is running collective"


def test_a_log_line_does_not_remove_a_culprit():
    ranks = (syncing(0), rank(1, stack(*READS)), syncing(2))
    clear = verdict(*ranks)
    beside = verdict(*ranks, said=(MISMATCH,))
    assert (clear.culprits, beside.culprits) == ((1,), (1,))
    assert beside.cause == "collective-mismatch", "it names the cause where the stacks are less sure"
    sure = verdict(gloo_reducing(0), sleeping(1), gloo_reducing(2), gloo_reducing(3), said=(MISMATCH,))
    assert (sure.cause, sure.confidence, sure.culprits) == ("missing-rank", "high", (1,)), "stacks that prove it stand"


def test_of_two_stuck_ranks_one_is_explained():
    opaque = rank(1, stack("usleep@libc.so.6", "??@libnccl.so.2", "ncclCommInitRank@libnccl.so.2"))
    circle = rank(0, thread(1), thread(2), pid=1, locks=(holds(1, 2, timed=True), holds(2, 1)))
    found = verdict(circle, opaque)
    assert (found.cause, found.culprits) == ("lock-order-deadlock", (0,)) or 1 in (*found.victims, *found.unexplained)
    assert found.confidence != "high"


def test_the_other_explanation_is_kept():
    """One rank tears down, another one is in a lock: both keep the third waiting."""
    found = verdict(reducing(0), rank(1, stack(*ABORTS, *ENGINE)), rank(2, stack(*LOCKS, *ENGINE)), reducing(3))
    causes = {found.cause, *(one.cause for one in found.alternatives)}
    assert {"destructor-or-teardown", "missing-rank"} <= causes


def test_what_is_only_assumed_is_never_sure():
    for snapshot in (job(reducing(0), sleeping(1)), job(syncing(0), inside(1, "cudaFree@libcudart.so.12"))):
        view = build_view(snapshot, judge(snapshot).processes)
        for one in hypotheses(view, build(view).graph):
            assert one.weakest != "assumed" or one.confidence == "low"
            assert one.weakest != "inferred" or one.confidence != "high"


# --- who is at the other end ---


def test_a_root_need_not_be_a_rank():
    peer = Peer(2, "pipe:[4711]", (880,), ("T",), ("tokenizer",))
    loads = rank(1, thread(1), thread(2, *READS), pid=1, locks=(holds(1, 2),), peers=(peer,))
    found = verdict(reducing(0), loads, reducing(2))
    assert steps(found) == ["rank", "collective", "rank", "lock", "thread", "peer", "process"]
    assert (found.root.pid, found.root.state) == (880, "stopped")
    assert found.chain[0].source.label == "ranks 0,2"


def test_a_rank_that_waits_alone_shows_how_far_its_wait_is_known():
    peer = Peer(1, "pipe:[7]", (880,), ("S",), ("tokenizer",))
    found = verdict(rank(0, thread(1, *READS), pid=1, peers=(peer,)))
    assert found.cause == "unknown"
    assert [edge.target.label for edge in found.chain] == ["read(pipe:[7])", "pid 880 (tokenizer)"]


def test_a_rank_in_a_collective_waits_for_no_pipe_and_a_stopped_one_for_nothing():
    """Programs poll their input beside the collective; no other process has it open any more."""
    ranks = [replace(gloo_reducing(n), peers=(Peer(1000 + n, "pipe:[7]", (1000 + n,)),)) for n in (0, 2)]
    stopped = rank(1, thread(5, *READS, state="T"), pid=5, peers=(Peer(5, "pipe:[7]", (5,)),))
    found = verdict(ranks[0], stopped, ranks[1])
    assert (found.cause, found.confidence, found.culprits) == ("missing-rank", "high", (1,))
    assert steps(found) == ["rank", "collective", "rank"]


def test_a_rank_that_is_stopped_comes_before_one_in_a_call_that_waits_for_the_device():
    """That it stands is seen; that the device runs a collective is read from what the others wait in."""
    stopped = rank(2, stack("poll@libc.so.6", "cudaStreamSynchronize@libcudart.so.12", *ENGINE, state="T"))
    found = verdict(syncing(0), inside(1, "cudaMallocHost@libcudart.so.12"), stopped)
    assert (found.cause, found.culprits) == ("missing-rank", (2,))
    assert "implicit-sync-vs-collective" in {one.cause for one in found.alternatives}


# --- circles and knots ---


def made(*edges):
    nodes = {name: Node(name, "thread", name) for edge in edges for name in edge[:2]}
    leaving = {}
    for source, target, *needs in edges:
        edge = Edge(nodes[source], nodes[target], "holds", "proven", (), needs[0] if needs else ALL)
        leaving.setdefault(source, []).append(edge)
    return WaitGraph(nodes, {key: tuple(some) for key, some in leaving.items()})


def test_a_wait_that_anybody_ends_is_a_knot_only_without_a_way_out():
    knot = made(("a", "b", ANY), ("b", "a", ANY))
    assert [set(one) for one in find_circles(knot)] == [{"a", "b"}]
    assert not find_circles(made(("a", "b", ANY), ("b", "a", ANY), ("b", "c", ANY)))
    assert [set(one) for one in find_circles(made(("a", "b"), ("b", "a"), ("b", "c")))] == [{"a", "b"}], "it needs all"


def test_a_circle_of_a_hundred_thousand():
    count = 100_000
    edges = [(str(number), str((number + 1) % count)) for number in range(count)]
    (whole,) = find_circles(made(*edges))
    assert len(whole) == count


def test_of_several_jobs_the_chain_has_the_numbers_of_the_whole_look():
    fine = [reducing(0), reducing(1)]
    hung = [replace(gloo_reducing(0), pid=70), replace(sleeping(1), pid=71)]
    found = judge(job(*fine, *hung)).verdict
    assert found.culprits == (3,)
    assert [edge.source.process for edge in found.chain] == [2, None]
    assert (found.root.process, found.root.pid) == (3, 71)
