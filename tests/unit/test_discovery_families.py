"""Which of several processes with the same variables is the rank."""

import pytest
from discovery_tree import NCCL, PYTHON, TORCH, Tree

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.discovery.ranks.selectors import Selector


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def found(tree):
    """[{rank: pid}] of all jobs, and {pid: role} of all others."""
    jobs = find_jobs(ProcFS(str(tree.folder)), Selector())
    others = {other.pid: other.role for job in jobs for other in job.others}
    return [{rank.rank: rank.pid for rank in job.ranks} for job in jobs], others


def test_children_of_a_rank_inherit_its_variables(tree):
    tree.add(10, 1, f"{PYTHON} /usr/local/bin/torchrun train.py")
    tree.torch_rank(20, 10, 0, 2)
    tree.torch_rank(21, 10, 1, 2)
    tree.torch_rank(30, 21, 1, 2)  # a data loader: forked, same command line
    tree.torch_rank(31, 30, 1, 2, title="python -c from_multiprocessing.spawn --multiprocessing-fork")
    tree.torch_rank(32, 21, 1, 2, title="python -c from multiprocessing.resource_tracker import main;main(4)")
    jobs, others = found(tree)
    assert jobs == [{0: 20, 1: 21}]
    assert others == {10: "launcher", 30: "child of rank 1", 31: "child of rank 1", 32: "resource tracker"}


def _ranks_with_threads(tree, parent, *numbers):
    for number in numbers:
        environ = {"RANK": number, "WORLD_SIZE": 3, "MASTER_ADDR": "h", "MASTER_PORT": 1}
        tree.add(20 + number, parent, "python train.py", environ=environ, files=(TORCH,), threads=9)


def test_what_a_rank_that_was_killed_has_forked_is_not_that_rank(tree):
    tree.add(10, 1, "bash run.sh")
    _ranks_with_threads(tree, 10, 0, 1)
    environ = {"RANK": 2, "WORLD_SIZE": 3, "MASTER_ADDR": "h", "MASTER_PORT": 1}
    tree.add(40, 1, "python train.py", environ=environ, files=(TORCH,))
    jobs = find_jobs(ProcFS(str(tree.folder)), Selector())
    assert [({rank.rank: rank.pid for rank in job.ranks}, job.absent) for job in jobs] == [({0: 20, 1: 21}, (2,))]


@pytest.mark.parametrize("parent", [1, 10], ids=["a launcher that has ended", "a rank without threads yet"])
def test_a_rank_with_one_thread_among_its_likes_is_a_rank(tree, parent):
    tree.add(10, 1, "bash run.sh")
    _ranks_with_threads(tree, parent, 0, 1)
    environ = {"RANK": 2, "WORLD_SIZE": 3, "MASTER_ADDR": "h", "MASTER_PORT": 1}
    tree.add(40, parent, "python train.py", environ=environ, files=(TORCH,))
    assert found(tree)[0] == [{0: 20, 1: 21, 2: 40}]


def test_forked_child_shows_the_title_of_its_parent(tree):
    tree.titled(20, 1, "VLLM::Worker_TP0", group=5)
    tree.titled(21, 1, "VLLM::Worker_TP1", group=5)
    tree.titled(30, 21, "VLLM::Worker_TP1")
    assert found(tree) == ([{0: 20, 1: 21}], {30: "child of rank 1"})


def test_launcher_below_another_launcher(tree):
    slurm = {"SLURM_PROCID": 0, "SLURM_NTASKS": 1, "SLURM_JOB_ID": 5}
    tree.add(10, 1, "python launch.py", environ=slurm, files=(TORCH,))
    for rank in (0, 1):
        environ = {**slurm, "RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "h", "MASTER_PORT": 1}
        tree.add(20 + rank, 10, "python train.py", environ=environ)
    assert found(tree) == ([{0: 20, 1: 21}], {10: "launcher"})


def test_wrapper_without_libraries_gives_way_to_its_child(tree):
    environ = {"RANK": 0, "WORLD_SIZE": 1}
    tree.add(10, 1, "python wrapper.py", environ=environ)
    tree.add(11, 10, "python train.py", environ=environ, files=(TORCH,))
    assert found(tree) == ([{0: 11}], {10: "launcher"})


def test_rank_zero_that_starts_the_others(tree):
    tree.add(10, 1, "python train.py", environ={"RANK": 0, "WORLD_SIZE": 3})
    tree.add(11, 10, "python train.py --x", environ={"RANK": 1, "WORLD_SIZE": 3})
    tree.add(12, 10, "python train.py --x", environ={"RANK": 2, "WORLD_SIZE": 3})
    jobs, _ = found(tree)
    assert [pid for job in jobs for pid in job.values()] == [10, 11, 12]


def test_script_in_a_batch_job_that_starts_an_engine(tree):
    environ = {"SLURM_PROCID": 0, "SLURM_NTASKS": 4, "SLURM_JOB_ID": 5}
    tree.add(10, 1, "python offline.py", environ=environ, files=(TORCH,))
    tree.titled(11, 10, "VLLM::EngineCore")
    tree.titled(20, 11, "VLLM::Worker_TP0")
    tree.titled(21, 11, "VLLM::Worker_TP1")
    assert found(tree)[0] == [{0: 20, 1: 21}]


def test_trainer_that_starts_an_engine_stays_a_rank(tree):
    tree.torch_rank(10, 1, 0, 1)
    tree.titled(11, 10, "VLLM::EngineCore")
    tree.titled(20, 11, "VLLM::Worker_TP0")
    tree.titled(21, 11, "VLLM::Worker_TP1")
    assert found(tree)[0] == [{0: 10}, {0: 20, 1: 21}]


def test_siblings_with_the_same_rank_the_one_with_the_gpu_wins(tree):
    environ = {"WORLD_RANK": 1, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
    tree.add(10, 1, "python -m maga_transformer.start_server")
    tree.add(
        20, 10, "python -c rank", environ={**environ, "WORLD_RANK": 0}, files=(TORCH,), open_files=("/dev/nvidia0",)
    )
    tree.add(21, 10, "python -c rank", environ=environ, files=(TORCH,), open_files=("/dev/nvidia1",))
    tree.add(22, 10, "python -c frontend", environ=environ, files=(TORCH,))
    jobs, others = found(tree)
    assert jobs == [{0: 20, 1: 21}]
    assert others[22] == "same variables as rank 1"


def test_equal_claims_stay_and_are_noted(tree):
    tree.torch_rank(20, 1, 0, 1)
    tree.torch_rank(21, 1, 0, 1)
    (job,) = find_jobs(ProcFS(str(tree.folder)), Selector())
    assert [rank.pid for rank in job.ranks] == [20, 21]
    assert "rank 0 is claimed by several processes: pids 20, 21" in job.notes


def test_debuggers_and_loggers_inside_a_job(tree):
    tree.torch_rank(20, 1, 0, 1)
    environ = {"RANK": 0, "WORLD_SIZE": 1, "TORCHELASTIC_RUN_ID": "none"}
    for index, title in enumerate(
        ["gdb -p 20", "python -m gdbext diagnose", "py-spy dump", "torch_shm_manager", "nvidia-smi"]
    ):
        tree.add(30 + index, 1, title, environ=environ, files=(TORCH, NCCL))
    assert found(tree) == ([{0: 20}], {})


def test_tree_with_a_loop_ends(tree):
    tree.torch_rank(20, 21, 0, 2)
    tree.torch_rank(21, 20, 1, 2)
    assert found(tree)[0] == [{0: 20, 1: 21}]
