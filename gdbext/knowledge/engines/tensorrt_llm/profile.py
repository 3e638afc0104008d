"""TensorRT-LLM: MPI ranks, started by mpirun or Slurm, or spawned by the LLM API through mpi4py."""

from gdbext.knowledge.launch.launchers import MODULE, PROGRAM, SCRIPT
from gdbext.knowledge.row_kinds import EngineProfile, TitleRule

PROFILE = EngineProfile(
    name="tensorrt-llm",
    titles=(
        TitleRule(MODULE + r"tensorrt_llm\.llmapi\.mgmn_(?:leader|worker)_node\b", "rank", "trtllm-llmapi-launch"),
        TitleRule(PROGRAM + r"(?:trtllmExecutorWorker|executorWorker)(?:\s|$)", "rank", "C++ executor, spawned by MPI"),
        TitleRule(SCRIPT + r"trtllm-llmapi-launch(?:\s|$)", "launcher", "trtllm-llmapi-launch"),
        TitleRule(SCRIPT + r"trtllm-(?:serve|bench|eval|disagg\S*)(?:\s|$)", "front end", "command line", alone=True),
        TitleRule(MODULE + r"tensorrt_llm\.commands\.\w+", "front end", "command line", alone=True),
    ),
    libraries=(
        r"(?:^|/)libtensorrt_llm\S*\.so",
        r"(?:^|/)libnvinfer_plugin_tensorrt_llm\S*\.so",
        r"(?:^|/)libtriton_tensorrtllm\S*\.so",
        r"/tensorrt_llm/\S*\.so",
    ),
    namespaces=(
        r"tensorrt_llm::",  # with and without the inline namespace _v1 behind it
        r"torch_ext::",
        r"triton::backend::inflight_batcher_llm",
    ),
    python_paths=(r"(?:^|/)tensorrt_llm/",),
    environment=("TLLM_SPAWN_PROXY_PROCESS", "TLLM_DISABLE_MPI", "tllm_mpi_size"),
    sizes={
        "tp": ("--tp_size", "--tensor_parallel_size", "--tp"),
        "pp": ("--pp_size", "--pipeline_parallel_size", "--pp"),
    },
    order=("pp", "tp"),
    notes={"spawn": "without mpirun the ranks are `python -m mpi4py.futures.server`, in an MPI namespace of their own"},
)
