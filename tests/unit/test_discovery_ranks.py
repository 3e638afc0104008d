"""From a tree of processes and a selector to one job."""

import os
import pwd
import shutil

import pytest
from discovery_tree import NCCL, OVERWRITTEN, PYTHON, SITE, TORCH, Tree

from gdbext.discovery.proc.procfs import DENIED, ProcFS
from gdbext.discovery.ranks.chosen_job import choose_job, find_jobs, rank_from_environ
from gdbext.discovery.ranks.selectors import Selector
from gdbext.model.errors import NothingFound, UsageError
from gdbext.model.job import RankProcess


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def jobs(tree, **selector):
    return find_jobs(ProcFS(str(tree.folder)), Selector(**selector))


def only(tree, **selector):
    return choose_job(jobs(tree, **selector), Selector(**selector))


def ranks_of(job):
    return {rank.rank: rank.pid for rank in job.ranks}


def roles_of(job):
    return {process.pid: process.role for process in job.others}


def test_torchrun(tree):
    tree.add(10, 1, "/bin/bash run.sh")
    tree.add(11, 10, f"{PYTHON} /usr/local/bin/torchrun --nproc-per-node 3 train.py")
    for rank in range(3):
        tree.torch_rank(20 + rank, 11, rank, 3)
    job = only(tree)
    assert ranks_of(job) == {0: 20, 1: 21, 2: 22}
    assert (job.engine, job.world_size, job.absent) == ("torch", 3, ())
    assert roles_of(job) == {11: "launcher"}
    assert job.ranks[1].rank_source == "environment RANK"
    assert job.ranks[1].local_rank == 1
    assert job.ranks[1].host == "node7"
    assert job.key == "torchrun, run id none, node7, port 29500"


def test_process_1_of_a_container_may_be_the_rank(tree):
    shutil.rmtree(tree.folder / "1")
    tree.torch_rank(1, 0, 0, 2)
    assert ranks_of(only(tree)) == {0: 1}


def test_what_looks_for_us_under_srun_is_no_rank(tree):
    """srun gives the variables of a rank to all that it starts, also to what --hosts starts."""
    tree.torch_rank(20, 1, 0, 2)
    variables = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_JOB_ID": "1", "SLURM_STEP_ID": "6"}
    tree.add(30, 1, ["python3", "-c", "# gdbext on a host\nimport sys\n"], environ=variables)
    tree.add(31, 30, f"{PYTHON} /tmp/gdbext-host-x/gdbext.pyz diagnose", environ=variables)
    assert ranks_of(only(tree)) == {0: 20}


def test_rtp_llm_title_carries_the_local_rank(tree):
    tree.add(10, 1, "python -m rtp_llm.start_server", environ={"TP_SIZE": "2"})
    tree.titled(11, 10, "rtp_llm_backend_server")
    tree.titled(12, 10, "rtp_llm_frontend_server_rank_0_server_1")
    tree.titled(20, 11, "rtp_llm_rank-0")
    tree.titled(21, 11, "rtp_llm_rank-1")
    job = only(tree)
    assert ranks_of(job) == {0: 20, 1: 21}
    assert job.engine == "rtp-llm"
    assert "local rank" in job.ranks[0].rank_source
    assert roles_of(job) == {10: "front end", 11: "backend server", 12: "front end"}


def test_rtp_llm_without_titles_is_told_by_world_rank(tree):
    tree.add(10, 1, "python -m maga_transformer.start_server")
    for rank in (0, 1):
        environ = {"WORLD_RANK": 8 + rank, "WORLD_SIZE": 16, "LOCAL_WORLD_SIZE": 8}
        spawned = [
            "python",
            "-c",
            "from multiprocessing.spawn import spawn_main; spawn_main()",
            "--multiprocessing-fork",
        ]
        tree.add(20 + rank, 10, spawned, environ=environ)
    job = only(tree)
    assert ranks_of(job) == {8: 20, 9: 21}
    assert job.engine == "rtp-llm"
    assert job.world_size == 16


def test_rtp_llm_with_one_rank_works_in_the_backend_server(tree):
    tree.add(10, 1, "python -m rtp_llm.start_server")
    tree.titled(11, 10, "rtp_llm_backend_server")
    assert ranks_of(only(tree)) == {0: 11}


def test_vllm_workers_and_what_is_around_them(tree):
    tree.add(10, 1, "/usr/bin/python3 /usr/bin/vllm serve model -tp 2 --pipeline-parallel-size=2")
    tree.titled(11, 10, "VLLM::EngineCore")
    tree.titled(12, 10, "VLLM::APIServer_0")
    tree.add(13, 11, ["python", "-c", "from multiprocessing.resource_tracker import main;main(5)"])
    for index, title in enumerate(["PP0_TP0", "PP0_TP1", "PP1_TP0", "PP1_TP1"]):
        tree.titled(20 + index, 11, f"VLLM::Worker_{title}")
    job = only(tree)
    assert ranks_of(job) == {0: 20, 1: 21, 2: 22, 3: 23}
    assert dict(job.ranks[2].labels) == {"pp": 1, "tp": 0}
    assert (job.engine, job.world_size, job.absent) == ("vllm", 4, ())
    assert roles_of(job) == {10: "front end", 11: "engine core", 12: "front end", 13: "resource tracker"}
    assert {one.pid: one.role for one in job.serving} == {10: "front end 0", 11: "engine core", 12: "front end 1"}


@pytest.mark.parametrize(("name", "serving"), [("Worker", []), ("VLLM", [11]), ("vllm|VLLM", [10, 11])])
def test_a_name_chooses_among_engine_cores_and_front_ends_too(tree, name, serving):
    tree.add(10, 1, "vllm serve model -tp 2")
    tree.titled(11, 10, "VLLM::EngineCore")
    for tp in (0, 1):
        tree.titled(20 + tp, 11, f"VLLM::Worker_TP{tp}")
    (job,) = find_jobs(ProcFS(str(tree.folder)), Selector(name=name))
    assert (sorted(ranks_of(job)), [one.pid for one in job.serving]) == ([0, 1], serving)


def test_vllm_data_parallel_is_the_outermost_group(tree):
    tree.add(10, 1, "vllm serve model")
    for core in (0, 1):
        tree.titled(11 + core, 10, f"VLLM::EngineCore_DP{core}")
        for tp in (0, 1):
            tree.titled(20 + 2 * core + tp, 11 + core, f"VLLM::Worker_DP{core}_TP{tp}_EP{2 * core + tp}")
    assert ranks_of(only(tree)) == {0: 20, 1: 21, 2: 22, 3: 23}


def test_vllm_engine_cores_of_a_script_are_one_job(tree):
    tree.add(10, 1, "python offline.py")
    for core in (0, 1):
        tree.titled(11 + core, 10, f"VLLM::EngineCore_DP{core}")
    job = only(tree)
    assert ranks_of(job) == {0: 11, 1: 12}
    assert job.world_size == 2


def test_vllm_on_one_gpu_has_no_worker_but_the_engine_core(tree):
    tree.add(10, 1, "vllm serve model")
    tree.titled(11, 10, "VLLM::EngineCore")
    tree.add(12, 11, "python helper.py", environ={"RANK": 0, "WORLD_SIZE": 2})
    job = only(tree)
    assert ranks_of(job) == {0: 11}
    assert job.world_size == 1
    assert roles_of(job)[10] == "front end"


def test_vllm_prefix_can_be_chosen(tree):
    tree.titled(11, 1, "prod-llama::Worker_TP0")
    tree.titled(12, 1, "prod-llama::Worker_TP1")
    assert ranks_of(only(tree)) == {0: 11, 1: 12}


def test_vllm_workers_before_groups_exist_have_no_number(tree):
    tree.titled(11, 1, "VLLM::Worker", group=5)
    tree.titled(12, 1, "VLLM::Worker", group=5)
    job = only(tree)
    assert [rank.rank for rank in job.ranks] == [None, None]
    assert job.ranks[0].rank_source.startswith("unknown: ")


def test_vllm_missing_worker_is_told_from_the_size_option(tree):
    tree.add(10, 1, "vllm serve model --tensor-parallel-size 4")
    tree.titled(11, 10, "VLLM::EngineCore")
    for tp in (0, 1, 2):
        tree.titled(20 + tp, 11, f"VLLM::Worker_TP{tp}")
    assert only(tree).absent == (3,)


def test_vllm_on_several_hosts_leaves_absent_empty(tree):
    tree.add(10, 1, "vllm serve model -tp 4 --nnodes 2 --node-rank 0")
    tree.titled(11, 10, "VLLM::EngineCore")
    for tp in (0, 1):
        tree.titled(20 + tp, 11, f"VLLM::Worker_TP{tp}")
    job = only(tree)
    assert (job.world_size, job.absent) == (4, ())


def test_pod_variables_do_not_number_titled_workers(tree):
    pod = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "pod-0", "MASTER_PORT": 1}
    tree.add(10, 1, "vllm serve model", environ=pod)
    tree.titled(11, 10, "VLLM::EngineCore")
    for tp in (0, 1):
        tree.titled(20 + tp, 11, f"VLLM::Worker_TP{tp}", environ=pod)
    job = only(tree)
    assert ranks_of(job) == {0: 20, 1: 21}
    assert job.world_size == 2


def test_sglang_schedulers_are_the_ranks(tree):
    tree.add(10, 1, "python -m sglang.launch_server --tp 2")
    tree.titled(11, 10, "sglang::detokenizer")
    tree.titled(20, 10, "sglang::scheduler_TP0")
    tree.titled(21, 10, "sglang::scheduler_TP1")
    job = only(tree)
    assert ranks_of(job) == {0: 20, 1: 21}
    assert roles_of(job) == {10: "front end", 11: "detokenizer"}


def test_sglang_attention_dp_lies_inside_tp(tree):
    tree.add(10, 1, "python -m sglang.launch_server --tp 2 --dp 2 --enable-dp-attention")
    tree.titled(20, 10, "sglang::scheduler_DP0_TP0_EP0")
    tree.titled(21, 10, "sglang::scheduler_DP1_TP1_EP1")
    job = only(tree)
    assert ranks_of(job) == {0: 20, 1: 21}
    assert (job.world_size, job.absent) == (2, ())


def test_sglang_plain_dp_is_outside_tp(tree):
    tree.add(10, 1, "python -m sglang.launch_server --tp 2 --dp 2")
    tree.titled(11, 10, "sglang::data_parallel_controller")
    for index, title in enumerate(["DP0_TP0", "DP0_TP1", "DP1_TP0", "DP1_TP1"]):
        tree.titled(20 + index, 11, f"sglang::scheduler_{title}")
    job = only(tree)
    assert ranks_of(job) == {0: 20, 1: 21, 2: 22, 3: 23}
    assert roles_of(job)[11] == "controller"


def test_sglang_on_one_gpu(tree):
    tree.add(10, 1, "python -m sglang.launch_server")
    tree.titled(20, 10, "sglang::scheduler")
    assert ranks_of(only(tree)) == {0: 20}


def mpi(rank, size, namespace="prterun-node7-100@1"):
    return {
        "OMPI_COMM_WORLD_RANK": rank,
        "OMPI_COMM_WORLD_SIZE": size,
        "OMPI_COMM_WORLD_LOCAL_RANK": rank,
        "OMPI_COMM_WORLD_LOCAL_SIZE": size,
        "PMIX_RANK": rank,
        "PMIX_NAMESPACE": namespace,
    }


def test_fastertransformer_under_mpirun(tree):
    tree.add(10, 1, "mpirun -n 3 ./bin/multi_gpu_gpt_example")
    for rank in range(3):
        tree.add(
            20 + rank,
            10,
            "./bin/multi_gpu_gpt_example",
            environ=mpi(rank, 3),
            files=("/ft/lib/libtransformer-shared.so",),
        )
    job = only(tree)
    assert ranks_of(job) == {0: 20, 1: 21, 2: 22}
    assert (job.engine, job.world_size) == ("fastertransformer", 3)


def test_fastertransformer_in_triton_is_one_process(tree):
    tree.add(
        10, 1, "/opt/tritonserver/bin/tritonserver --model-repository=/m", files=("/b/libtriton_fastertransformer.so",)
    )
    job = only(tree)
    assert ranks_of(job) == {0: 10}
    assert "threads" in job.ranks[0].rank_source


def test_mpi_program_without_an_engine(tree):
    tree.add(10, 1, "/usr/bin/mpirun -n 2 ./app")
    for rank in range(2):
        tree.add(20 + rank, 10, "./app", environ=mpi(rank, 2), files=("/usr/lib/libmpi.so.40", NCCL))
    job = only(tree)
    assert (job.engine, ranks_of(job)) == ("mpi", {0: 20, 1: 21})


def test_tensorrt_llm_workers_that_mpi_spawned(tree):
    files = (f"{SITE}/tensorrt_llm/libs/libtensorrt_llm.so", TORCH)
    tree.add(10, 1, "/usr/bin/python3 /usr/local/bin/trtllm-serve model --tp_size 2", files=files)
    tree.add(11, 10, "orted --singleton")
    for rank in range(2):
        worker = "python -m mpi4py.futures.server"
        tree.add(20 + rank, 11, worker, environ=mpi(rank, 2, "prterun-node7-100@2"), files=files)
    job = only(tree)
    assert (job.engine, ranks_of(job)) == ("tensorrt-llm", {0: 20, 1: 21})
    assert roles_of(job)[10] == "front end"


def test_tensorrt_llm_nodes_started_by_slurm(tree):
    slurm = {"SLURM_JOB_ID": 5, "SLURM_STEP_ID": 0, "SLURM_NTASKS": 2, "SLURM_JOB_NUM_NODES": 1}
    tree.add(10, 1, "slurmstepd: [5.0]")
    for rank, node in enumerate(["leader", "worker"]):
        environ = {**slurm, "SLURM_PROCID": rank, "SLURM_LOCALID": rank}
        tree.add(20 + rank, 10, "/bin/bash trtllm-llmapi-launch trtllm-serve m", environ=environ)
        tree.add(30 + rank, 20 + rank, f"python -m tensorrt_llm.llmapi.mgmn_{node}_node", environ=environ)
    tree.add(40, 20, "/usr/bin/python3 /usr/bin/trtllm-serve m")
    job = only(tree)
    assert (job.engine, ranks_of(job), job.absent) == ("tensorrt-llm", {0: 30, 1: 31}, ())


def test_turbomind_and_llama_cpp_are_one_process_each(tree):
    tree.add(10, 1, "/usr/bin/python3 /usr/bin/lmdeploy serve api_server model --tp 4")
    assert (only(tree).engine, ranks_of(only(tree))) == ("turbomind", {0: 10})
    tree.add(20, 1, "/opt/llama-server -m model.gguf")
    assert ranks_of(only(tree, engine="llama.cpp")) == {0: 20}


def test_mindspore_scheduler_is_no_rank(tree):
    shared = {"MS_WORKER_NUM": 2, "MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": 8118}
    tree.add(10, 1, "/usr/bin/python3 /usr/bin/msrun --worker_num=2 net.py")
    tree.add(11, 10, "python net.py", environ={**shared, "MS_ROLE": "MS_SCHED", "RANK_ID": 0})
    for rank in (0, 1):
        tree.add(
            20 + rank,
            10,
            "python net.py",
            environ={**shared, "MS_ROLE": "MS_WORKER", "RANK_ID": rank, "DEVICE_ID": rank},
        )
    job = only(tree)
    assert (job.engine, ranks_of(job), job.world_size) == ("mindspore", {0: 20, 1: 21}, 2)
    assert roles_of(job)[11] == "scheduler"


def test_slurm_shell_and_tools_are_no_ranks(tree):
    environ = {"SLURM_PROCID": 0, "SLURM_NTASKS": 1, "SLURM_JOB_ID": 5}
    tree.add(10, 1, "slurmstepd: [5.0]")
    tree.add(11, 10, "/bin/bash script.sh", environ=environ)
    tree.add(12, 11, "tee log", environ=environ)
    tree.add(13, 11, "/usr/bin/awk x", environ=environ)
    assert jobs(tree) == ()
    tree.add(14, 11, "python train.py", environ=environ)
    assert ranks_of(only(tree)) == {0: 14}


def test_dlrover_agent_carries_the_number_of_its_node(tree):
    agent = {"RANK": 1, "WORLD_SIZE": 2, "NODE_RANK": 1}
    tree.add(10, 1, "python /usr/bin/dlrover-run --nnodes 2 train.py", environ=agent)
    for rank in (2, 3):
        tree.torch_rank(20 + rank, 10, rank, 4, 2)
    assert ranks_of(only(tree)) == {2: 22, 3: 23}


def test_ray_services_are_no_ranks(tree):
    tree.add(10, 1, "/ray/core/raylet --x")
    tree.titled(11, 10, "ray::IDLE")
    tree.titled(20, 10, "ray::RayWorkerWrapper.execute_method", environ={})
    job = only(tree)
    assert [rank.pid for rank in job.ranks] == [20]
    assert job.engine == "vllm"
    assert job.ranks[0].rank is None


def test_rank_from_arguments(tree):
    for rank in (0, 1):
        tree.add(10 + rank, 1, f"./engine --rank={rank} --world-size 2", environ={"GROUP": "x"}, files=(NCCL,), group=9)
    job = only(tree, name="engine")
    assert ranks_of(job) == {0: 10, 1: 11}
    assert job.ranks[0].rank_source == "argument --rank"
    assert job.world_size == 2


def test_title_of_ones_own_below_a_launcher(tree):
    tree.add(10, 1, f"{PYTHON} /usr/local/bin/torchrun x.py")
    tree.titled(20, 10, "trainer [rank 1] step 7")
    tree.titled(21, 10, "my trainer")
    job = only(tree)
    assert [(rank.pid, rank.rank) for rank in job.ranks] == [(20, 1), (21, None)]
    assert "overwrote" in job.ranks[1].rank_source


def test_gpu_process_without_any_sign_is_found_when_nothing_else_is(tree):
    tree.add(10, 1, "python notebook.py", files=(TORCH, NCCL), open_files=("/dev/nvidia0", "/dev/nvidiactl"))
    tree.add(11, 1, "python other.py", files=(TORCH, NCCL))
    assert [rank.pid for rank in only(tree).ranks] == [10]
    tree.torch_rank(20, 1, 0, 1)
    assert [rank.pid for rank in only(tree).ranks] == [20]


def test_several_jobs_are_listed(tree):
    tree.torch_rank(20, 1, 0, 2)
    tree.torch_rank(21, 1, 1, 2)
    tree.torch_rank(30, 1, 0, 1, environ={"MASTER_PORT": 29501})
    tree.titled(40, 1, "sglang::scheduler_TP1", group=40)
    with pytest.raises(UsageError) as error:
        only(tree)
    lines = str(error.value).splitlines()
    assert lines[0] == "3 jobs are on this host: choose one by a pid, --parent, --pgid or --engine"
    assert lines[1] == "  torch, torchrun, run id none, node7, port 29500: ranks 0-1, pids 20-21"
    assert lines[4] == "  torch, torchrun, run id none, node7, port 29501: rank 0, pid 30"
    assert lines[7] == "  sglang, process group 40: rank 1, pid 40"
    assert lines[3::3] == [f"    gdbext diagnose {pid}" for pid in (20, 30, 40)]


def two_jobs_of_one_shell(tree):
    tree.add(10, 1, "/bin/bash run-all.sh")
    for first, port in ((20, 29500), (30, 29501)):
        tree.add(first, 10, f"{PYTHON} /usr/local/bin/torchrun --master-port {port} train.py")
        for rank in (0, 1):
            tree.torch_rank(first + 1 + rank, first, rank, 2, environ={"MASTER_PORT": port})
    (tree.folder / "uptime").write_text("7250.5 9000.0\n")


def test_several_jobs_below_one_pid_are_listed(tree, monkeypatch):
    """`gdbext diagnose PID` of the shell that started both gave one verdict over all of them."""
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    two_jobs_of_one_shell(tree)
    with pytest.raises(UsageError) as error:
        choose_job(jobs(tree, pids=(10,)), Selector(pids=(10,)), "gdbext stacks", ProcFS(str(tree.folder)))
    user = pwd.getpwuid(os.getuid()).pw_name
    port = "--master-port"
    assert str(error.value).splitlines() == [
        "2 jobs match 10: choose one by a pid, --parent, --pgid or --engine",
        "  torch, torchrun, run id none, node7, port 29500: ranks 0-1, pids 21-22",
        f"    started 2 h ago by {user}: {PYTHON} /usr/local/bin/torchrun {port} 29500 train.py",
        "    gdbext stacks 21",
        "  torch, torchrun, run id none, node7, port 29501: ranks 0-1, pids 31-32",
        f"    started 2 h ago by {user}: {PYTHON} /usr/local/bin/torchrun {port} 29501 train.py",
        "    gdbext stacks 31",
    ]
    for pid in (20, 21, 22):
        assert [rank.pid for rank in only(tree, pids=(pid,)).ranks] == [21, 22], "each line chooses its job"
    for pids in ((21, 31), (10, 21, 22, 31, 32)):
        assert [rank.pid for rank in only(tree, pids=pids).ranks] == [21, 31, 22, 32], "as the user says"


def test_services_among_the_pids_are_left_out_unless_they_are_all_that_is_named(tree):
    tree.add(20, 1, "python serve.py")
    tree.add(21, 20, ["python", "-c", "from multiprocessing.resource_tracker import main;main(5)"])
    job = only(tree, pids=(20, 21))
    assert [rank.pid for rank in job.ranks] == [20]
    assert "pid 21 is left out: it is a resource tracker; give it alone to read it" in job.notes
    assert [rank.pid for rank in only(tree, pids=(21,)).ranks] == [21]
    tree.add(22, 20, ["python", "-c", "from multiprocessing.forkserver import main; main(3)"])
    tree.add(23, 22, ["python", "-c", "from multiprocessing.forkserver import main; main(3)"])
    job = only(tree, pids=(20, 22, 23))
    assert [rank.pid for rank in job.ranks] == [20, 23], "what a fork server forks has its title"


def test_one_pid_stands_for_what_it_has_started_as_well(tree):
    tree.add(20, 1, "python serve.py")
    tree.add(21, 20, "/bin/sh -c ./download weights")
    tree.add(22, 21, "./download weights")
    tree.add(23, 20, ["python", "-c", "from multiprocessing.resource_tracker import main;main(5)"])
    tree.add(30, 1, "./download other")
    job = only(tree, pids=(20,))
    assert [rank.pid for rank in job.ranks] == [20, 22]
    assert "pid 22, started by pid 20, is read as well" in job.notes
    assert [rank.pid for rank in only(tree, pids=(22,)).ranks] == [22]
    assert [rank.pid for rank in only(tree, pids=(20, 30)).ranks] == [20, 30], "several are what the user wants"


def test_a_pid_with_many_programs_below_it_stands_for_itself(tree):
    tree.add(20, 1, "python supervise.py")
    for pid in range(21, 38):
        tree.add(pid, 20, f"./service-{'abcdefghijklmnopq'[pid - 21]}")
    assert [rank.pid for rank in only(tree, pids=(20,)).ranks] == [20]


def test_a_rank_that_starts_another_job_stands_for_its_own(tree):
    two_jobs_of_one_shell(tree)
    tree.torch_rank(40, 21, 0, 1, environ={"MASTER_PORT": 29502})
    assert [rank.pid for rank in only(tree, pids=(21,)).ranks] == [21, 22]


def test_nothing_found(tree):
    tree.add(10, 1, "/bin/bash")
    with pytest.raises(NothingFound, match="no rank process was found on this host"):
        only(tree)
    with pytest.raises(NothingFound, match=r"^no process 99 is running"):
        only(tree, pids=(99,))


@pytest.mark.parametrize("pid", [10, 11, 20, 21, 25])
def test_any_member_stands_for_the_whole_job(tree, pid):
    tree.add(10, 1, "/bin/bash run.sh")
    tree.add(11, 10, f"{PYTHON} /usr/local/bin/torchrun train.py")
    tree.torch_rank(20, 11, 0, 2)
    tree.torch_rank(21, 11, 1, 2)
    tree.torch_rank(25, 21, 1, 2)
    tree.torch_rank(30, 1, 0, 1, environ={"MASTER_PORT": 29501})
    assert ranks_of(only(tree, pids=(pid,))) == {0: 20, 1: 21}


def test_front_end_stands_for_its_workers(tree):
    tree.add(10, 1, "vllm serve a")
    tree.titled(11, 10, "VLLM::Worker_TP0")
    tree.titled(12, 10, "VLLM::Worker_TP1")
    tree.add(20, 1, "vllm serve b")
    tree.titled(21, 20, "VLLM::Worker_TP0")
    tree.titled(22, 20, "VLLM::Worker_TP1")
    assert len(jobs(tree)) == 2
    assert ranks_of(only(tree, pids=(20,))) == {0: 21, 1: 22}
    assert ranks_of(only(tree, parent=10)) == {0: 11, 1: 12}
    assert ranks_of(only(tree, name="serve b")) == {0: 21, 1: 22}


def test_plain_processes_count_by_the_users_word(tree):
    tree.add(10, 1, "./server a", group=7)
    tree.add(11, 1, "./server b", group=7)
    tree.add(12, 1, "/bin/bash")
    tree.torch_rank(20, 1, 0, 1)
    assert [(rank.pid, rank.rank, rank.role) for rank in only(tree, pids=(10, 11, 99)).ranks] == [
        (10, None, "rank"),
        (11, None, "rank"),
    ]
    assert "no process 99 is running" in only(tree, pids=(10, 99)).notes
    assert [rank.pid for rank in only(tree, name=r"^\./server").ranks] == [10, 11]
    assert [rank.pid for rank in only(tree, pgid=7).ranks] == [10, 11]
    assert [rank.pid for rank in only(tree, pids=(12,)).ranks] == [12]


def test_pids_of_two_jobs_are_taken_together(tree):
    tree.torch_rank(20, 1, 0, 1)
    tree.torch_rank(30, 1, 0, 1, environ={"MASTER_PORT": 29501})
    job = only(tree, pids=(20, 30))
    assert [rank.pid for rank in job.ranks] == [20, 30]
    assert "taken together" in job.notes[0]


def test_name_chooses_single_ranks(tree):
    for tp in range(4):
        tree.titled(20 + tp, 1, f"VLLM::Worker_TP{tp}", group=9)
    job = only(tree, name="TP[13]$")
    assert ranks_of(job) == {1: 21, 3: 23}
    assert job.absent == ()
    assert "2 further ranks were not selected" in job.notes


def test_selectors_hold_together(tree):
    tree.torch_rank(20, 1, 0, 2)
    tree.torch_rank(21, 1, 1, 2)
    assert ranks_of(only(tree, engine="torch", name="train")) == {0: 20, 1: 21}
    with pytest.raises(NothingFound, match="--engine vllm"):
        only(tree, engine="vllm", name="train")


def test_selectors_that_mean_nothing(tree):
    with pytest.raises(UsageError, match="unknown engine 'gpt'"):
        jobs(tree, engine="gpt")
    with pytest.raises(UsageError, match="not a valid regular expression"):
        jobs(tree, name="(")


def test_thread_id_stands_for_its_process(tree, tmp_path):
    tree.torch_rank(20, 1, 0, 1)
    (tmp_path / "23").mkdir()
    (tmp_path / "23/status").write_text("Name:\tx\nTgid:\t20\n")
    assert [rank.pid for rank in only(tree, pids=(23,)).ranks] == [20]


def test_a_name_never_means_ourselves(tree, tmp_path):
    tree.add(10, 1, "python wrapper.py --name server")
    tree.add(11, 10, "python -m gdbext diagnose --name server")
    tree.add(12, 1, "./server")
    (tmp_path / "self").symlink_to("11")
    assert [rank.pid for rank in only(tree, name="server").ranks] == [12]


def test_titles_are_scrubbed(tree):
    tree.torch_rank(20, 1, 0, 1, title=f"{PYTHON} train.py --api-key SECRET")
    assert "SECRET" not in only(tree).ranks[0].title


def test_processes_that_may_not_be_read_are_counted(tree, monkeypatch):
    tree.add(21, 1, "/usr/sbin/daemon")
    monkeypatch.setattr(ProcFS, "environ", lambda self, pid: DENIED)
    with pytest.raises(
        NothingFound, match="1 process of other users could not be inspected: run as their user, or as root"
    ):
        only(tree)


@pytest.mark.parametrize(("title", "counted"), [("python serve.py", True), ("/sbin/init", False)])
def test_process_1_is_counted_where_it_may_be_a_rank(tmp_path, monkeypatch, title, counted):
    tree = Tree(tmp_path)
    (tmp_path / "1/exe").unlink()  # it may not be read either
    (tmp_path / "1/cmdline").write_bytes(title.replace(" ", "\0").encode() + b"\0")
    monkeypatch.setattr(ProcFS, "environ", lambda self, pid: DENIED)
    with pytest.raises(NothingFound) as raised:
        only(tree)
    assert ("1 process of other users could not be inspected" in str(raised.value)) == counted


def test_ranks_that_may_not_be_read_are_found_by_their_titles_where_there_are_no_others(tree, monkeypatch):
    """All that there is of them can be told, and what would make them readable."""
    for number in (0, 1):
        tree.titled(20 + number, 1, f"VLLM::Worker_TP{number}")
    monkeypatch.setattr(ProcFS, "environ", lambda self, pid: DENIED)
    found = only(tree)
    assert (found.engine, [(rank.pid, rank.rank) for rank in found.ranks]) == ("vllm", [(20, 0), (21, 1)])
    assert not any("may not be read" in note for note in found.notes)
    assert [(rank.pid, rank.rank) for rank in only(tree, pids=(21,)).ranks] == [(20, 0), (21, 1)], "any member will do"


def test_the_launcher_stands_for_ranks_that_may_not_be_read(tree, monkeypatch):
    tree.torch_rank(10, 1, 0, 1)
    tree.add(20, 1, f"{PYTHON} -m vllm.entrypoints.openai.api_server")
    for number in (0, 1):
        tree.titled(21 + number, 20, f"VLLM::Worker_TP{number}")
    mine = ProcFS.environ
    monkeypatch.setattr(ProcFS, "environ", lambda self, pid: DENIED if pid >= 20 else mine(self, pid))
    assert [rank.pid for rank in only(tree, pids=(20,)).ranks] == [21, 22]
    assert [rank.pid for rank in only(tree, pids=(10,)).ranks] == [10]
    assert any("2 rank processes of vllm cannot be read" in note for note in only(tree, pids=(10,)).notes)


def test_ranks_that_may_not_be_read_do_not_stand_in_the_way_of_ours(tree, monkeypatch):
    tree.titled(20, 1, "VLLM::Worker_TP0")
    tree.torch_rank(30, 1, 0, 1)
    mine = ProcFS.environ
    monkeypatch.setattr(ProcFS, "environ", lambda self, pid: DENIED if pid == 20 else mine(self, pid))
    found = only(tree)
    assert [rank.pid for rank in found.ranks] == [30]
    assert any("1 rank process of vllm cannot be read" in note for note in found.notes)
    assert [(rank.pid, rank.rank) for rank in only(tree, pids=(20,)).ranks] == [(20, 0)]


def rank(**details):
    return RankProcess(pid=1, role="rank", **details)


def test_memory_completes_an_unknown_rank():
    done = rank_from_environ(rank(), {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"})
    assert (done.rank, done.world_size, done.local_rank, done.rank_source) == (3, 8, 1, "memory RANK")


def test_memory_corrects_a_rank_that_was_only_local():
    before = rank(engine="rtp-llm", rank=1, local_rank=1, rank_source="title (local rank; no sign of a second host)")
    done = rank_from_environ(before, {"WORLD_RANK": "9", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"})
    assert (done.rank, done.local_rank, done.world_size) == (9, 1, 16)


def test_memory_does_not_overrule_a_title():
    before = rank(engine="vllm", rank=1, rank_source="title")
    assert rank_from_environ(before, {"RANK": "0", "WORLD_SIZE": "1"}) == before


def test_memory_of_a_pod_does_not_number_untitled_workers():
    assert rank_from_environ(rank(engine="vllm"), {"RANK": "0", "WORLD_SIZE": "1"}).rank is None
    started = {"RANK": "2", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"}
    assert rank_from_environ(rank(engine="vllm"), started).rank == 2


def test_memory_of_a_scheduler_changes_nothing():
    assert rank_from_environ(rank(), {"RANK_ID": "0", "MS_ROLE": "MS_SCHED"}) == rank()


def test_memory_without_rank_variables_changes_nothing():
    assert rank_from_environ(rank(), {"HOME": "/"}) == rank()


def test_environment_that_a_title_overwrote_is_named(tree):
    tree.add(10, 1, ["custom title"], environ=OVERWRITTEN, exe=PYTHON)
    assert "overwrote" in only(tree, pids=(10,)).ranks[0].rank_source
