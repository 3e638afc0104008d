"""The rows themselves: they compile, name known things, and fit the titles and frames they were written for."""

import re

import pytest

from gdbext.knowledge.engines.all_profiles import GENERIC, PROFILES
from gdbext.knowledge.launch.environment import RECORDED
from gdbext.knowledge.launch.launchers import NOT_RANKS, RANK_ARGUMENTS, VARIABLES

GROUPS = {"rank", "local_rank", "tp", "pp", "dp", "ep", "pcp", "dcp", "attn_cp", "moe_dp"}
BY_NAME = {profile.name: profile for profile in PROFILES}


def test_every_engine_has_a_row():
    names = "rtp-llm fastertransformer turbomind tensorrt-llm vllm sglang llama-cpp mindspore torch mpi"
    assert set(BY_NAME) == set(names.split())
    assert [profile.name for profile in PROFILES[-2:]] == list(GENERIC)


@pytest.mark.parametrize("profile", PROFILES, ids=list(BY_NAME))
def test_patterns_compile_and_name_known_groups(profile):
    for rule in profile.titles:
        assert set(re.compile(rule.pattern).groupindex) <= GROUPS
        assert rule.source
    for pattern in (*profile.libraries, *profile.namespaces, *profile.python_paths):
        re.compile(pattern)
    assert set(profile.overlapping) <= set(profile.order)
    assert set(profile.sizes) <= set(profile.order)
    assert all(not name.startswith("-") for name in profile.environment)


def test_other_patterns_compile():
    for rule in (*NOT_RANKS, *RANK_ARGUMENTS):
        re.compile(rule.pattern)


def role_of(title):
    """Role by the first rule that fits, as discovery applies them."""
    for rule in NOT_RANKS:
        if re.search(rule.pattern, title):
            return rule.role, None
    for profile in PROFILES:
        for rule in profile.titles:
            if re.search(rule.pattern, title):
                return rule.role, profile.name
    return None, None


@pytest.mark.parametrize(
    "title, role, engine",
    [
        ("rtp_llm_rank-3", "rank", "rtp-llm"),
        ("rtp_llm_backend_server", "backend server", "rtp-llm"),
        ("rtp_llm_frontend_server_rank_0_server_2", "front end", "rtp-llm"),
        ("rtp_llm_dash_sc_server_rank_0_server_0", "server", "rtp-llm"),
        ("rtp_llm_vit_proxy_server", "server", "rtp-llm"),
        ("VLLM::Worker", "rank", "vllm"),
        ("VLLM::Worker_DP1_PP0_PCP1_TP3_DCP1_EP7", "rank", "vllm"),
        ("VLLM::EngineCore_DP1", "engine core", "vllm"),
        ("VLLM::APIServer_DP1", "front end", "vllm"),
        ("VLLM::DPCoordinator", "coordinator", "vllm"),
        ("/x/site-packages/vllm/vllm-rs serve", "front end", "vllm"),
        ("python3 -m vllm.entrypoints.openai.api_server --model m", "front end", "vllm"),
        ("sglang::scheduler_DP0_PP1_ATTN_CP0_MOE_DP1_TP2_EP3", "rank", "sglang"),
        ("sglang::detokenizer", "detokenizer", "sglang"),
        ("sglang::detokenizer_router", "router", "sglang"),
        ("sglang::data_parallel_controller", "controller", "sglang"),
        ("sglang::tokenizer_worker:4711", "front end", "sglang"),
        ("sgl_diffusion::scheduler_1", "rank", "sglang"),
        ("/opt/bin/trtllmExecutorWorker --x", "rank", "tensorrt-llm"),
        ("/usr/bin/python3 /usr/local/bin/trtllm-bench run", "front end", "tensorrt-llm"),
        ("./bin/multi_gpu_gpt_example config.ini", "rank", "fastertransformer"),
        ("lmdeploy serve api_server m", "front end", "turbomind"),
        ("./llama-server -m x", "rank", "llama-cpp"),
        ("./rpc-server -p 1", "server", "llama-cpp"),
        ("./build/all_reduce_perf -g 8", "rank", "mpi"),
        ("python -m mpi4py.futures.server", "rank", "mpi"),
        ("python -m mpi4py.futures app.py", "launcher", None),
        ("/usr/bin/python3 -u /usr/bin/torchrun --nproc-per-node 8 x.py", "launcher", None),
        ("python3 -m torch.distributed.run x.py", "launcher", None),
        ("mpirun.openmpi -n 2 python x.py", "launcher", None),
        ("orted -mca x", "launcher", None),
        ("prterun -n 2 x", "launcher", None),
        ("srun -n 2 x", "launcher", None),
        ("python /usr/bin/msrun --worker_num=8 x.py", "launcher", None),
        ("-bash", "shell", None),
        ("/bin/sh -c 'VLLM::Worker_TP0'", "shell", None),
        ("gdb -p 12", "debugger", None),
        ("/opt/cuda/bin/cuda-gdb", "debugger", None),
        ("python3 -m gdbext diagnose", "debugger", None),
        ("/usr/bin/python3 /usr/bin/gdbext ranks", "debugger", None),
        ("ray::IDLE", "Ray service", None),
        ('ray-dashboard-NodeHead-0 (python -c "from multiprocessing.forkserver import main")', "Ray service", None),
        ("/x/ray/core/src/ray/raylet/raylet --a", "Ray service", None),
        ("python -c from multiprocessing.resource_tracker import main;main(5)", "resource tracker", None),
        ("python -c from multiprocessing.forkserver import main; main(3)", "helper", None),
        ("python /x/torch/_inductor/compile_worker/__main__.py --p", "helper", None),
        ("python train.py --shell bash", None, None),
        ("python -c from multiprocessing.spawn import spawn_main; spawn_main() --multiprocessing-fork", None, None),
        ("vim VLLM::Worker_TP0", None, None),
        ("./gdbserver_bench", None, None),
        ("./shard", None, None),
    ],
)
def test_titles(title, role, engine):
    assert role_of(title) == (role, engine)


@pytest.mark.parametrize(
    "engine, function",
    [
        ("fastertransformer", "fastertransformer::GptContextDecoder::forward"),
        ("rtp-llm", "rtp_llm::CudaDevice::allReduce"),
        ("turbomind", "turbomind::comm::NcclCommImpl::AllReduceSum"),
        ("tensorrt-llm", "tensorrt_llm::plugins::AllreducePlugin::enqueue"),
        ("tensorrt-llm", "tensorrt_llm::_v1::common::check"),
        ("vllm", "vllm::cross_device_reduce_1stage"),
        ("llama-cpp", "ggml_backend_sched_graph_compute"),
        ("llama-cpp", "llama_decode"),
        ("mindspore", "mindspore::runtime::GraphScheduler::Run"),
    ],
)
def test_namespaces(engine, function):
    assert any(re.match(pattern, function) for pattern in BY_NAME[engine].namespaces)


@pytest.mark.parametrize(
    "engine, path",
    [
        ("vllm", "/usr/lib/python3/dist-packages/vllm/v1/executor/multiproc_executor.py"),
        ("vllm", "vllm/v1/worker/gpu_worker.py"),
        ("sglang", "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py"),
        ("rtp-llm", "/opt/rtp_llm/server/backend_server.py"),
        ("tensorrt-llm", "tensorrt_llm/llmapi/mgmn_worker_node.py"),
        ("turbomind", "/x/lmdeploy/turbomind/turbomind.py"),
    ],
)
def test_python_paths(engine, path):
    assert any(re.search(pattern, path) for pattern in BY_NAME[engine].python_paths)


@pytest.mark.parametrize("path", ["/home/me/train.py", "torch/nn/modules/module.py", "/home/vllm/train.py"])
def test_user_code_is_no_engine(path):
    for profile in PROFILES:
        assert not any(re.search(pattern, path) for pattern in profile.python_paths), profile.name


@pytest.mark.parametrize(
    "path, engine",
    [
        ("/usr/lib/python3/site-packages/vllm/_C.abi3.so", "vllm"),
        ("/usr/lib/python3/site-packages/tensorrt_llm/libs/libtensorrt_llm.so", "tensorrt-llm"),
        ("/x/sgl_kernel/common_ops.abi3.so", "sglang"),
        ("/x/lmdeploy/lib/_turbomind.cpython-311-x86_64-linux-gnu.so", "turbomind"),
        ("/x/rtp_llm/libs/libth_transformer.so", "rtp-llm"),
        ("/ft/build/lib/libth_transformer.so", "fastertransformer"),
        ("/x/llama_cpp/lib/libggml-cuda.so", "llama-cpp"),
        ("/x/torch/lib/libtorch_cuda.so", "torch"),
        ("/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4", "mpi"),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", None),
    ],
)
def test_libraries(path, engine):
    found = (profile.name for profile in PROFILES if any(re.search(pattern, path) for pattern in profile.libraries))
    assert next(found, None) == engine


def test_every_variable_row_is_recorded_and_none_is_secret():
    for row in VARIABLES:
        assert {row.rank, row.world_size, row.local_rank} - {""} <= set(RECORDED)
    assert all(RECORDED.values())
    assert not [name for name in RECORDED if re.search("KEY|SECRET|PASSWORD|TOKEN", name)]
