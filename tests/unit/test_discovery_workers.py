"""Workers that one program has started: by their likeness, their variables of now, and their connections."""

import os
import signal
import tempfile

import pytest
from discovery_tree import PYTHON, TORCH, Tree

from gdbext.capture.symbols.environ import read_environ
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs, told_apart
from gdbext.discovery.ranks.selectors import Selector
from gdbext.model.job import RankProcess
from gdbext.model.missing import Missing
from tests.bench.groups import members, start, wrong
from tests.inferiors.groups import KINDS

SPAWNED = [
    PYTHON,
    "-c",
    "from multiprocessing.spawn import spawn_main; spawn_main(pipe_handle={})",
    "--multiprocessing-fork",
]
SERVER = [PYTHON, "-c", "from multiprocessing.forkserver import main; main(3, 5, [])"]
TRACKER = [PYTHON, "-c", "from multiprocessing.resource_tracker import main;main(3)"]
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def jobs(tree, selector=Selector(), present=None):
    """[(pids of the ranks by number or None), others] of each job; `present`: variables of now by pid."""
    read = (lambda pid: (present or {}).get(pid, Missing("cannot be read"))) if present is not None else None
    found = find_jobs(ProcFS(str(tree.folder)), selector, read)
    return [([(rank.rank, rank.pid) for rank in job.ranks], {one.pid: one.role for one in job.others}) for job in found]


def spawned(tree, parent, pids, **details):
    for pid in pids:
        tree.add(pid, parent, [*SPAWNED[:2], SPAWNED[2].format(pid), SPAWNED[3]], **details)


def connect(tree, pid, *pairs, table="tcp"):
    """Write the table of TCP sockets that `pid` sees: (local port, remote port, inode)."""
    net = tree.folder / str(pid) / "net"
    net.mkdir(exist_ok=True)
    rows = [f"0: 0100007F:{local:04X} 0100007F:{remote:04X} 01 0:0 0:0 0 0 0 {inode}" for local, remote, inode in pairs]
    (net / table).write_text("\n".join([HEAD, *rows]) + "\n")


@pytest.mark.parametrize("selector", [Selector(), Selector((10,)), Selector((21,)), Selector(parent=10)])
def test_workers_of_multiprocessing(tree, selector):
    tree.add(10, 1, "python serve.py")
    tree.add(11, 10, TRACKER)
    spawned(tree, 10, (20, 21, 22))
    (tree.folder / "10" / "wchan").write_text("do_wait")
    assert jobs(tree, selector) == [([(None, 20), (None, 21), (None, 22)], {10: "parent", 11: "resource tracker"})]


@pytest.mark.parametrize(("libraries", "ranks"), [((), [10, 20, 21]), ((TORCH,), [20, 21])])
def test_a_driver_that_is_named_beside_its_workers_is_read_unless_they_are_ranks(tree, libraries, ranks):
    """A launcher stands for its ranks alone: it comes to none of their collectives."""
    tree.add(10, 1, "python serve.py")
    spawned(tree, 10, (20, 21), files=libraries)
    (tree.folder / "10" / "wchan").write_text("do_wait")
    assert [pid for _, pid in jobs(tree, Selector((10, 20)))[0][0]] == ranks


def test_what_a_fork_server_forks_has_its_title(tree):
    tree.add(10, 1, "python serve.py")
    tree.add(11, 10, SERVER)
    for pid in (20, 21):
        tree.add(pid, 11, SERVER)
    (tree.folder / "10" / "wchan").write_text("do_wait")
    assert jobs(tree, Selector((20,))) == [([(None, 20), (None, 21)], {10: "parent", 11: "helper"})]


@pytest.mark.parametrize(
    ("place", "ranks"), [("do_wait", [20, 21]), ("0", [20, 21]), ("futex_wait_queue", [10, 20, 21])]
)
def test_a_program_that_waits_for_a_result_takes_part(tree, place, ranks):
    tree.add(10, 1, "python pool.py")
    tree.add(20, 10, "python pool.py")
    tree.add(21, 10, "python pool.py")
    (tree.folder / "10" / "wchan").write_text(place)
    ((found, _),) = jobs(tree)
    assert [pid for _, pid in found] == ranks


def test_a_program_that_polls_for_the_results_of_joblibs_workers(tree):
    tree.add(10, 1, "python fit.py")
    for pid in (20, 21):
        tree.add(
            pid,
            10,
            f"python -m joblib.externals.loky.backend.popen_loky_posix --process-name LokyProcess-{pid} --pipe {pid}",
        )
    (tree.folder / "10" / "wchan").write_text("hrtimer_nanosleep")
    ((found, _),) = jobs(tree)
    assert [pid for _, pid in found] == [10, 20, 21]


def test_the_child_that_a_program_waits_for(tree):
    tree.add(10, 1, "python train.py")
    tree.add(20, 10, "python train.py")
    (tree.folder / "10" / "wchan").write_text("do_wait")
    assert jobs(tree, Selector((10,))) == [([(None, 10), (None, 20)], {})]


def test_variables_that_workers_set_themselves(tree):
    """Spawned below a pod whose RANK is the number of the node."""
    pod = {"RANK": 0, "WORLD_SIZE": 1}
    tree.add(10, 1, "python serve.py", environ=pod)
    spawned(tree, 10, (20, 21), environ=pod, files=(TORCH,))
    spawned(tree, 20, (30, 31), environ=pod, files=(TORCH,))  # loaders of the first
    own = {rank: {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "9"} for rank in (0, 1)}
    present = {20: own[0], 21: own[1], 30: own[0], 31: own[0]}
    ((ranks, others),) = jobs(tree, present=present)
    assert ranks == [(0, 20), (1, 21)]
    assert others[30] == others[31] == "child of rank 0"


def test_a_worker_that_has_not_numbered_itself_yet(tree):
    tree.add(10, 1, "python serve.py")
    spawned(tree, 10, (20, 21, 22), files=(TORCH,))
    present = {pid: {"RANK": str(pid - 20), "WORLD_SIZE": "3"} for pid in (20, 21)}
    ((ranks, _),) = jobs(tree, present={**present, 22: {}})
    assert ranks == [(0, 20), (1, 21), (None, 22)]


@pytest.mark.parametrize("table", ["tcp", "tcp6"])
def test_connected_workers_are_found_beside_another_job(tree, table):
    tree.torch_rank(5, 1, 0, 1)
    tree.add(10, 1, "python serve.py")
    for pid, inode in ((20, 55), (21, 66)):
        tree.add(pid, 10, "python work.py --id 3", files=(TORCH,), open_files=(f"socket:[{inode}]",))
        connect(tree, pid, (29500, 4000, 55), (4000, 29500, 66))
    tree.add(22, 10, "python work.py --id 4", files=(TORCH,))  # it has not come to the store
    assert [ranks for ranks, _ in jobs(tree)] == [[(0, 5)], [(None, 20), (None, 21), (None, 22)]]


def test_workers_without_a_connection_are_no_job_beside_another(tree):
    tree.torch_rank(5, 1, 0, 1)
    tree.add(10, 1, "python serve.py")
    for pid in (20, 21):
        tree.add(pid, 10, "python serve.py", files=(TORCH,))
        connect(tree, pid, (29500, 4000, 55), (4000, 29500, 66))
    assert [ranks for ranks, _ in jobs(tree)] == [[(0, 5)]]
    assert [pid for _, pid in jobs(tree, Selector((21,)))[0][0]] == [20, 21]


def test_a_manager_of_objects_is_no_rank(tree):
    tree.add(10, 1, "python serve.py")
    for pid in (20, 21, 22):
        tree.add(pid, 10, "python serve.py", open_files=("socket:[7]",) if pid == 20 else ())
        (tree.folder / str(pid) / "net").mkdir()
        (tree.folder / str(pid) / "net" / "unix").write_text(
            "Num RefCount Protocol Flags Type St Inode Path\n0: 2 0 10000 1 1 7 /tmp/pymp-x1/listener-ab\n"
        )
    (tree.folder / "10" / "wchan").write_text("do_wait")
    assert jobs(tree) == [([(None, 21), (None, 22)], {10: "parent", 20: "manager"})]


def test_daemons_and_shells_are_no_workers(tree):
    for pid in (20, 21):
        tree.add(pid, 1, "/usr/sbin/daemon --flag")
        tree.add(pid + 10, 1, "-bash")
        tree.add(pid + 20, pid + 10, "-bash")
    assert jobs(tree) == []


def test_a_number_that_several_claim_is_of_none():
    first, second, third = told_apart(
        [RankProcess(1, "rank", rank=0), RankProcess(2, "rank", rank=0), RankProcess(3, "rank", rank=1)]
    )
    assert (first.rank, second.rank, third.rank) == (None, None, 1)
    assert first.rank_source == "unknown: rank 0 is claimed by 2 processes"


REAL = (
    "fork",
    "spawn",
    "forkserver",
    "manager",
    "pool-that-waits",
    "one-forked-child",
    "native-fork",
    "torch-spawn-environment",
)


@pytest.mark.process
@pytest.mark.parametrize("kind", REAL)
def test_real_jobs_from_any_member(kind):
    folder = tempfile.mkdtemp()
    top = start(kind, folder)
    try:
        truth = members(kind, folder)
        ways = [Selector((pid,)) for pid in {*truth.ranks, *truth.others, top.pid}] + [Selector(parent=top.pid)]
        for selector in ways:
            jobs = find_jobs(ProcFS(), selector, read_environ)
            found = [{rank.pid: rank.rank for rank in job.ranks} for job in jobs]
            assert wrong(truth, KINDS[kind][1], found) == "", selector
    finally:
        os.killpg(top.pid, signal.SIGKILL)
        top.wait()
