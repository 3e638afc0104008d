"""SGLang: HTTP server and tokenizer in front, a scheduler process per GPU: the schedulers are the ranks."""

from gdbext.knowledge.launch.launchers import MODULE, SCRIPT
from gdbext.knowledge.row_kinds import EngineProfile, TitleRule

PROFILE = EngineProfile(
    name="sglang",
    titles=(
        TitleRule(
            r"^sglang::scheduler(?:_DP(?P<dp>\d+))?(?:_PP(?P<pp>\d+))?(?:_ATTN_CP(?P<attn_cp>\d+))?"
            r"(?:_MOE_DP(?P<moe_dp>\d+))?(?:_TP(?P<tp>\d+))?(?:_EP(?P<ep>\d+))?\s*$",
            "rank",
            "sglang 0.5.23 scheduler.py; a part stands only where that size is above one",
        ),
        TitleRule(r"^sgl_diffusion::scheduler(?:_(?P<rank>\d+))?\s*$", "rank", "sglang diffusion"),
        TitleRule(r"^sglang::detokenizer(?!_router)", "detokenizer", "sglang detokenizer_manager.py"),
        TitleRule(r"^sglang::detokenizer_router", "router", "sglang"),
        TitleRule(r"^sglang::data_parallel_controller", "controller", "sglang data_parallel_controller.py"),
        TitleRule(r"^sglang::tokenizer_worker", "front end", "sglang"),
        TitleRule(r"^(?:sglang|sgl_diffusion)::", "server", "any other process of SGLang"),
        TitleRule(MODULE + r"sglang\.(?:launch_server|bench\S*|srt\.\S+)", "front end", "command line"),
        TitleRule(MODULE + r"sglang_router\.\S+", "router", "command line"),
        TitleRule(SCRIPT + r"sglang\s+(?:serve|generate)(?:\s|$)", "front end", "command line"),
    ),
    libraries=(r"/(?:sgl_kernel|sglang)/\S*\.so",),
    namespaces=(r"sglang::", r"sgl_kernel::", r"sgl_diffusion::"),
    python_paths=(r"(?:^|/)sglang/(?:srt|lang|jit_kernel|multimodal_gen|cli|launch_server)", r"(?:^|/)sgl_kernel/"),
    environment=("SGLANG_BLOCK_NONZERO_RANK_CHILDREN", "SGLANG_SKIP_P2P_CHECK"),
    overlapping=("dp",),
    sizes={
        "tp": ("--tp-size", "--tensor-parallel-size", "--tp"),
        "pp": ("--pp-size", "--pipeline-parallel-size", "--pp"),
        "dp": ("--dp-size", "--data-parallel-size", "--dp"),
    },
    notes={
        "ranks": "tp, pp and dp ranks are arguments of run_scheduler_process: only the title says them",
        "dp": "with attention data parallelism the dp groups lie inside the tp group",
        "idle": "followers without work wait in broadcast_pyobj on the Gloo group of the tp ranks",
    },
)
