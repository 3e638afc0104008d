"""Jobs told apart, and what belongs to each."""

import pytest
from discovery_tree import NCCL, TORCH, Tree

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.discovery.ranks.selectors import Selector


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def pids(tree):
    return [[rank.pid for rank in job.ranks] for job in find_jobs(ProcFS(str(tree.folder)), Selector())]


def test_same_port_in_two_containers(tree):
    tree.torch_rank(20, 1, 0, 1)
    tree.torch_rank(30, 1, 0, 1, namespaces={"pid": "pid:[2]"})
    assert pids(tree) == [[20], [30]]


def test_mpi_namespaces(tree):
    for index, space in enumerate(["a", "a", "b"]):
        environ = {"OMPI_COMM_WORLD_RANK": index % 2, "OMPI_COMM_WORLD_SIZE": 2, "PMIX_NAMESPACE": space}
        tree.add(20 + index, 1, "python app.py", environ=environ)
    assert pids(tree) == [[20, 21], [22]]


def test_hydra_has_no_namespace_but_a_tree(tree):
    for job in (0, 1):
        tree.add(10 + 10 * job, 1, "mpiexec.hydra -n 2 ./app")
        tree.add(11 + 10 * job, 10 + 10 * job, "hydra_pmi_proxy --x")
        for rank in (0, 1):
            environ = {"PMI_RANK": rank, "PMI_SIZE": 2}
            tree.add(12 + 10 * job + rank, 11 + 10 * job, "./app", environ=environ, files=("/lib/libmpich.so.12",))
    assert pids(tree) == [[12, 13], [22, 23]]


def test_orphans_of_a_dead_front_end_share_a_process_group(tree):
    for tp in (0, 1):
        tree.titled(20 + tp, 1, f"VLLM::Worker_TP{tp}", group=10)
        tree.titled(30 + tp, 1, f"VLLM::Worker_TP{tp}", group=11)
    assert pids(tree) == [[20, 21], [30, 31]]


def test_background_jobs_of_one_script(tree):
    tree.add(10, 1, "/bin/bash run.sh", group=10)
    for rank in (0, 1):
        tree.add(20 + rank, 10, "python a.py", environ={"RANK": rank, "WORLD_SIZE": 2}, group=10)
    assert pids(tree) == [[20, 21]]


def test_unknown_parent_stands_for_its_ranks(tree):
    tree.add(10, 1, "./my_launcher", environ={})
    for rank in (0, 1):
        tree.add(20 + rank, 10, "./engine", environ={"RANK": rank, "WORLD_SIZE": 2}, files=(TORCH,))
    (job,) = find_jobs(ProcFS(str(tree.folder)), Selector(pids=(10,)))
    assert [rank.pid for rank in job.ranks] == [20, 21]
    assert [(other.pid, other.role) for other in job.others] == [(10, "parent")]


def test_outer_launchers_do_not_mix_jobs(tree):
    tree.add(5, 1, "slurmd")
    for job in (0, 1):
        base = 10 + 10 * job
        tree.add(base, 5, f"slurmstepd: [{job}.0]")
        tree.add(base + 1, base, "python -m sglang.launch_server --tp 2")
        tree.titled(base + 2, base + 1, "sglang::detokenizer")
        for tp in (0, 1):
            tree.titled(base + 3 + tp, base + 1, f"sglang::scheduler_TP{tp}")
    jobs = find_jobs(ProcFS(str(tree.folder)), Selector())
    assert [[other.pid for other in job.others] for job in jobs] == [[10, 11, 12], [20, 21, 22]]


def test_jobs_that_one_parent_starts_one_after_the_other(tree):
    """Nothing but the order of their start tells them apart; start_time follows the pid in these trees."""
    tree.add(10, 1, "python run_two.py")
    for first in (20, 30):
        for rank in range(2):
            environ = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank}
            tree.add(first + rank, 10, "engine", environ=environ, exe="/opt/engine", files=(NCCL,))
    jobs = find_jobs(ProcFS(str(tree.folder)), Selector())
    assert [[rank.pid for rank in job.ranks] for job in jobs] == [[20, 21], [30, 31]]
    assert "job 2 by start time" in jobs[1].key
