"""How many ranks there should be, and which of them are missing here."""

import pytest
from discovery_tree import Tree

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.discovery.ranks.selectors import Selector


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def only(tree):
    (job,) = find_jobs(ProcFS(str(tree.folder)), Selector())
    return job


def test_all_are_missing_but_one(tree):
    tree.torch_rank(20, 1, 2, 4)
    assert only(tree).absent == (0, 1, 3)


def test_only_ranks_of_this_host_can_be_missing(tree):
    tree.torch_rank(20, 1, 4, 8, 4)
    tree.torch_rank(21, 1, 6, 8, 4)
    job = only(tree)
    assert (job.world_size, job.absent) == (8, (5, 7))


def test_two_agents_on_one_host(tree):
    for rank in (0, 1, 3):
        tree.torch_rank(20 + rank, 1, rank, 8, 2)
    assert only(tree).absent == (2,)


def test_ranks_dealt_out_over_hosts_one_by_one_leave_it_open(tree):
    for local, rank in enumerate((0, 2)):
        environ = {
            "OMPI_COMM_WORLD_RANK": rank,
            "OMPI_COMM_WORLD_SIZE": 6,
            "OMPI_COMM_WORLD_LOCAL_RANK": local,
            "OMPI_COMM_WORLD_LOCAL_SIZE": 3,
            "PMIX_NAMESPACE": "x",
        }
        tree.add(20 + rank, 1, "python app.py", environ=environ)
    assert only(tree).absent == ()


@pytest.mark.parametrize(
    "environ, absent",
    [
        ({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 1}, (1,)),
        ({"MASTER_ADDR": "10.0.0.7", "MASTER_PORT": 1}, ()),
        ({}, (1,)),  # no address to meet at: other hosts could not join
    ],
)
def test_hosts_told_by_the_rendezvous_address(tree, environ, absent):
    tree.add(20, 1, "python app.py", environ={"RANK": 0, "WORLD_SIZE": 2, **environ})
    assert only(tree).absent == absent


def test_slurm_on_one_node(tree):
    for rank in (0, 2):
        environ = {"SLURM_PROCID": rank, "SLURM_NTASKS": 3, "SLURM_JOB_ID": 7, "SLURM_JOB_NUM_NODES": 1}
        tree.add(20 + rank, 1, "python app.py", environ=environ)
    job = only(tree)
    assert (job.world_size, job.absent) == (3, (1,))
    assert job.key == "Slurm, job 7"


def test_virtual_local_rank_says_zero_to_everybody(tree):
    for rank in (4, 5, 6, 7):
        tree.torch_rank(20 + rank, 1, rank, 8, 4, environ={"LOCAL_RANK": 0, "CUDA_VISIBLE_DEVICES": rank - 4})
    job = only(tree)
    assert [rank.local_rank for rank in job.ranks] == [0, 1, 2, 3]
    assert job.ranks[2].device == "cuda:0 (GPU 2)"
    assert job.absent == ()


def test_gap_in_local_titles(tree):
    tree.titled(10, 1, "rtp_llm_backend_server")
    tree.titled(20, 10, "rtp_llm_rank-0")
    tree.titled(22, 10, "rtp_llm_rank-2")
    assert only(tree).absent == (1,)


def test_local_title_on_one_of_several_hosts_needs_memory(tree):
    tree.titled(10, 1, "rtp_llm_backend_server")
    tree.titled(20, 10, "rtp_llm_rank-0", environ={"WORLD_RANK": 8, "WORLD_SIZE": 16, "LOCAL_WORLD_SIZE": 8})
    tree.titled(21, 10, "rtp_llm_rank-1")
    job = only(tree)
    assert [(rank.rank, rank.local_rank) for rank in job.ranks] == [(8, 0), (None, 1)]
    assert job.absent == ()


def test_sizes_that_make_no_sense_are_not_listed(tree):
    tree.add(10, 1, "vllm serve m -tp 9000000")
    tree.titled(20, 10, "VLLM::Worker_TP0")
    assert only(tree).absent == ()


def test_tp_rank_in_arguments(tree):
    for tp in (0, 1):
        environ = {"FLUX_TASK_RANK": "?", "TM_LOG_LEVEL": "INFO"}
        tree.add(20 + tp, 1, f"python worker.py --tp-rank {tp}", environ=environ, group=5)
    (job,) = find_jobs(ProcFS(str(tree.folder)), Selector(name="worker"))
    assert [(rank.rank, rank.rank_source) for rank in job.ranks] == [(0, "arguments"), (1, "arguments")]


def test_zombie_keeps_the_name_it_had(tree):
    tree.titled(10, 1, "rtp_llm_backend_server")
    tree.titled(20, 10, "rtp_llm_rank-0")
    tree.add(21, 10, [""], comm="rtp_llm_rank-1", state="Z", exe="gone")
    assert [(rank.rank, rank.state) for rank in only(tree).ranks] == [(0, "S"), (1, "Z")]
