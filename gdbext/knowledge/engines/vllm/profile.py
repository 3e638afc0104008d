"""vLLM: API server, engine core, and a worker process per GPU that is named by its parallel groups."""

from gdbext.knowledge.launch.launchers import MODULE, PROGRAM, SCRIPT
from gdbext.knowledge.row_kinds import EngineProfile, TitleRule

_PREFIX = r"^(?!ray::|sglang::|sgl_)[\w.-]+::"
"""`VLLM::`, or what VLLM_PROCESS_NAME_PREFIX says."""

PROFILE = EngineProfile(
    name="vllm",
    titles=(
        TitleRule(
            _PREFIX + r"Worker(?:_DP(?P<dp>\d+))?(?:_PP(?P<pp>\d+))?(?:_PCP(?P<pcp>\d+))?(?:_TP(?P<tp>\d+))?"
            r"(?:_DCP(?P<dcp>\d+))?(?:_EP(?P<ep>\d+))?\s*$",
            "rank",
            "vllm system_utils.py; a part stands only where that size is above one",
        ),
        TitleRule(_PREFIX + r"EngineCore(?:_(?:DP)?(?P<dp>\d+))?\s*$", "engine core", "vllm core.py", alone=True),
        TitleRule(_PREFIX + r"APIServer(?:_\w+)?\s*$", "front end", "vllm serve.py"),
        TitleRule(_PREFIX + r"DPCoordinator\s*$", "coordinator", "vllm coordinator.py"),
        TitleRule(PROGRAM + r"vllm-rs(?:\s|$)", "front end", "vllm 0.33 wheel: a front end in Rust"),
        TitleRule(SCRIPT + r"vllm\s+(?:serve|bench|chat|complete|run-batch)(?:\s|$)", "front end", "vllm command line"),
        TitleRule(MODULE + r"vllm\.entrypoints\.\S+", "front end", "vllm command line"),
        TitleRule(SCRIPT + r"vllm-mindspore\s+serve(?:\s|$)", "front end", "vLLM-MindSpore documentation 0.4"),
        TitleRule(MODULE + r"vllm_mindspore\.entrypoints(?:\s|$)", "front end", "vLLM-MindSpore documentation 0.3"),
        TitleRule(r"^ray::Ray(?:WorkerProc|WorkerWrapper|GPUExecutor\w*)", "rank", "vllm ray executors"),
    ),
    libraries=(r"/vllm/\S*\.so", r"(?:^|/)_(?:moe|flashkda|qutlass)_C\w*\.abi3\.so", r"(?:^|/)_vllm_fa\d_C\S*\.so"),
    namespaces=(r"vllm::", r"paged_attention_v\d", r"vllm_flash_attn::"),
    python_paths=(
        r"(?:site|dist)-packages/vllm/",
        r"(?:^|/)vllm/(?:v1|engine|entrypoints|executor|worker|distributed|model_executor|attention|compilation|lora|"
        r"platforms|plugins|utils|multimodal|spec_decode|transformers_utils|device_allocator|profiler)/",
        r"^vllm/\w+\.py$",
    ),
    environment=("VLLM_DP_RANK", "VLLM_DP_SIZE", "VLLM_WORKER_MULTIPROC_METHOD"),
    order=("dp", "pp", "pcp", "tp"),
    sizes={
        "tp": ("--tensor-parallel-size", "-tp", "--tensor_parallel_size"),
        "pp": ("--pipeline-parallel-size", "-pp", "--pipeline_parallel_size"),
        "pcp": ("--prefill-context-parallel-size", "-pcp"),
        "dp": ("--data-parallel-size", "-dp", "--data_parallel_size"),
    },
    several_hosts=(
        "--headless",
        "--data-parallel-size-local",
        "-dpl",
        "--data-parallel-address",
        "-dpa",
        "--data-parallel-start-rank",
        "-dpr",
        "--data-parallel-rank",
        "-dpn",
    ),
    notes={
        "variables": "workers get their rank as a pickled argument: there is no RANK in their environment",
        "single": "with one GPU there is no worker: the engine core runs the model",
        "title": "without the package setproctitle workers look like any spawned Python",
        "idle": "worker_busy_loop in acquire_read is a worker without work",
    },
)
