"""What an engine gets at its start so that it records or writes something: `gdbext run --profile`, `--dump` and
`--sanitizer` (rows)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Tuple

_MS = "MindSpore 2.6 documentation: environment variables, dump"
_TRTLLM = "NVIDIA/TensorRT-LLM"

PROFILE, GRAPHS, TENSORS, SANITIZER = "profile", "graphs", "tensors", "sanitizer"


@dataclass(frozen=True)
class StartSetting:
    """One setting. `{dir}` in `value` is the folder for the files, `{first}` and `{last}` steps, `{file}` the file that
    is written for it (`file`: what is in it, by a name that `cli.starting` knows).

    `argument`: no variable but an option behind the program's words, where these are the engine's own command.
    """

    purpose: str
    engine: str  # "" for every one that is built on torch
    name: str
    value: str
    source: str
    argument: bool = False
    file: str = ""
    writes: str = ""  # where the files will be


@dataclass(frozen=True)
class StartNote:
    """What to know of a purpose and an engine: what no setting can do, what must be done besides."""

    purpose: str
    engine: str
    text: str
    source: str


_profile, _graphs, _tensors, _sanitizer = (partial(StartSetting, one) for one in (PROFILE, GRAPHS, TENSORS, SANITIZER))

SETTINGS: Tuple[StartSetting, ...] = (
    _profile(
        "tensorrt-llm",
        "TLLM_TORCH_PROFILE_TRACE",
        "{dir}/trace.json",
        f"{_TRTLLM} pyexecutor; #13536: the rank is put behind the name",
        writes="{dir}/trace-rank-N.json",
    ),
    _profile("tensorrt-llm", "TLLM_PROFILE_START_STOP", "{first}-{last}", f"{_TRTLLM} perf-analysis.md: iterations"),
    _profile("tensorrt-llm", "TLLM_PROFILE_RECORD_GC", "1", f"{_TRTLLM} perf-analysis.md"),
    _profile(
        "mindspore",
        "MS_PROFILER_OPTIONS",
        '{{"start": true, "output_path": "{dir}", "activities": ["CPU", "NPU"], "profiler_level": "Level1"}}',
        f"{_MS}; mindspore/profiler/envprofiler.py; Level1 has communication.json",
        writes="{dir}/HOST_PID_TIME_ascend_ms",
    ),
    _profile(
        "vllm",
        "VLLM_TORCH_PROFILER_DIR",
        "{dir}",
        "vLLM before 0.13; vLLM-MindSpore documentation, profiling",
        writes="{dir}, after `gdbext profile run`",
    ),
    _profile(
        "sglang",
        "SGLANG_TORCH_PROFILER_DIR",
        "{dir}",
        "sglang scheduler profiler_manager.py",
        writes="{dir}, after `gdbext profile run`",
    ),
    _graphs("", "TORCH_COMPILE_DEBUG", "1", "torch/_dynamo/config.py", writes="{dir}/torch_compile_debug/run_*-pid_N"),
    _graphs("", "TORCH_COMPILE_DEBUG_DIR", "{dir}", "torch/_dynamo/config.py, measured with torch 2.13"),
    _graphs(
        "",
        "TORCH_TRACE",
        "{dir}/torch_trace",
        "torch/_logging/_internal.py: dedicated_log_torch_trace_rank_N_*.log; tlparse reads it",
        writes="{dir}/torch_trace",
    ),
    _graphs(
        "vllm",
        "VLLM_DEBUG_DUMP_PATH",
        "{dir}/vllm",
        "vllm envs.py; config/vllm.py compile_debug_dump_path: rank_R_dp_D",
        writes="{dir}/vllm/rank_R_dp_D",
    ),
    _graphs(
        "tensorrt-llm",
        "AD_DUMP_GRAPHS_DIR",
        "{dir}/autodeploy",
        f"{_TRTLLM} table of variables: the AutoDeploy backend",
        writes="{dir}/autodeploy",
    ),
    _graphs("mindspore", "MS_DEV_SAVE_GRAPHS", "2", f"{_MS}: 1, 2 or 3, each with more files"),
    _graphs("mindspore", "MS_DEV_SAVE_GRAPHS_PATH", "{dir}/mindspore", _MS, writes="{dir}/mindspore/rank_N"),
    _tensors(
        "mindspore",
        "MINDSPORE_DUMP_CONFIG",
        "{file}",
        f"{_MS}, Ascend O0/O1 and CPU/GPU",
        file="mindspore-dump",
        writes="{dir}/mindspore/rank_N/NET/GRAPH/STEP",
    ),
    _tensors("sglang", "DUMPER_ENABLE", "1", "sglang debug_utils/dumper.py (2026)"),
    _tensors(
        "sglang",
        "DUMPER_DIR",
        "{dir}/dumper",
        "sglang debug_utils/dumper.py (2026)",
        writes="{dir}/dumper/NAME/step=S___rank=R___...pt",
    ),
    _tensors("sglang", "DUMPER_NON_INTRUSIVE_MODE", "all", "sglang debug_utils/dumper.py (2026)"),
    _tensors(
        "sglang",
        "--debug-tensor-dump-output-folder",
        "{dir}/sglang",
        "sglang debug_utils/tensor_dump_forward_hook.py",
        argument=True,
        writes="{dir}/sglang/TPt_PPp_RankR_pidN/PassS.pt",
    ),
    _sanitizer(
        "",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "1",
        "torch CUDA semantics, memory management: for cuda-memcheck; expandable segments are not used then, either",
    ),
    _sanitizer(
        "",
        "TORCH_NCCL_ENABLE_MONITORING",
        "0",
        "torch 2.14.1 ProcessGroupNCCL::HeartbeatMonitor: ends a rank without a heartbeat after 480 s",
    ),
    _sanitizer(
        "vllm",
        "--enforce-eager",
        "",
        "pytorch c10/cuda/CUDACachingAllocator.cpp: uncached memory is refused while a CUDA graph is captured",
        argument=True,
    ),
    _sanitizer("vllm", "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", "86400", "vllm 0.33.0 vllm/envs.py: 300 s for a step"),
    _sanitizer(
        "sglang",
        "--disable-cuda-graph",
        "",
        "pytorch c10/cuda/CUDACachingAllocator.cpp: uncached memory is refused while a CUDA graph is captured",
        argument=True,
    ),
    _sanitizer(
        "sglang", "--watchdog-timeout", "86400", "sglang 0.5.23 srt/utils/watchdog.py: 300 s for a batch", argument=True
    ),
)

NOTES: Tuple[StartNote, ...] = (
    StartNote(
        PROFILE,
        "vllm",
        'since 0.13 vLLM takes --profiler-config \'{{"profiler":"torch","torch_profiler_dir":"{dir}"}}\' instead',
        "vllm config/profiler.py",
    ),
    StartNote(
        PROFILE,
        "tensorrt-llm",
        "before May 2026 all ranks wrote one file, which is corrupt where there is more than one",
        f"{_TRTLLM} #13536",
    ),
    StartNote(
        GRAPHS,
        "vllm",
        "a graph that is in the compile cache is not compiled again: VLLM_DISABLE_COMPILE_CACHE=1",
        "vllm",
    ),
    StartNote(
        TENSORS,
        "mindspore",
        "with jit_level O2 and in PyNative mode dumping has moved to msprobe, which reads no such file",
        "MindSpore 2.6 documentation, dump; CANN msprobe",
    ),
    StartNote(
        TENSORS,
        "sglang",
        "tensors inside of CUDA graphs are not seen: start it with --disable-cuda-graph",
        "sglang tensor_dump_forward_hook.py: hooks of modules, which a replayed graph does not call",
    ),
    StartNote(
        TENSORS,
        "tensorrt-llm",
        "TensorRT-LLM writes tensors only where its program sets an executor DebugConfig: into $TMPDIR/tllm_debug, all "
        "ranks into the same folder (its PP_ and TP_ are sizes), so give each rank a TMPDIR of its own",
        f"{_TRTLLM} cpp/tensorrt_llm/batch_manager/utils/debugUtils.cpp getOutputPath",
    ),
    StartNote(
        SANITIZER,
        "tensorrt-llm",
        "TensorRT-LLM needs cuda_graph_config: null: torch refuses uncached memory while a CUDA graph is captured",
        f"{_TRTLLM} llmapi CudaGraphConfig",
    ),
    StartNote(TENSORS, "vllm", "no setting of vLLM is known that writes tensors", "vllm envs.py, 0.33"),
)

STEPS = (100, 150)
"""Iterations that are profiled where nobody says which: behind the warm-up (TensorRT-LLM perf-analysis.md)."""
