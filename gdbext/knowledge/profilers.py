"""How each engine's own profiler is started and stopped over HTTP, and how its routes are switched on (rows)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Mapping, Tuple

_VLLM = "vllm-project/vllm entrypoints/serve/profile/api_router.py, config/profiler.py, profiler/wrapper.py (2026)"
_SGLANG = "sgl-project/sglang managers/io_struct.py ProfileReqInput, scheduler_components/profiler_manager.py (2026)"
_TRTLLM = "NVIDIA/TensorRT-LLM #13872 (May 2026) serve/openai_server.py, pyexecutor profiling"


@dataclass(frozen=True)
class ProfilerRow:
    """The profiler of one engine, as its server offers it.

    `fields` names the field of the start request's body for each option of `gdbext profile` that the engine knows.
    """

    engine: str
    source: str
    proof: Tuple[str, ...]  # routes in /openapi.json that together only this engine has
    start: str = "/start_profile"
    stop: str = "/stop_profile"
    port: int = 8000  # where its command line names none
    fields: Mapping[str, str] = field(default_factory=dict)
    steps_limited_by: str = ""  # the server's setting that does what `steps` asks, where releases ignore the body
    folder_options: Tuple[
        str, ...
    ] = ()  # of the server: where it writes traces; JSON with `folder_key` in it, or a path
    folder_key: str = ""
    folder_variables: Tuple[str, ...] = ()
    switch_on: Tuple[str, ...] = ()  # how to start the server so that it has the routes; () where it always has them
    token_options: Tuple[str, ...] = ()  # of the server: with one of them its routes ask for a token
    stopped: str = ""  # regex on what it answers to a stop when the steps were done before
    running: str = ""  # regex on what it answers to a start while a profile runs
    notes: Tuple[str, ...] = ()


PROFILERS: Dict[str, ProfilerRow] = {
    row.engine: row
    for row in (
        ProfilerRow(
            engine="sglang",
            source=_SGLANG,
            proof=("/flush_cache", "/generate", "/start_profile"),
            port=30000,
            fields={
                "dir": "output_dir",
                "steps": "num_steps",
                "start_step": "start_step",
                "activities": "activities",
                "by_stage": "profile_by_stage",
                "stages": "profile_stages",
                "stack": "with_stack",
                "shapes": "record_shapes",
                "engine_merge": "merge_profiles",
                "prefix": "profile_prefix",
            },
            folder_variables=("SGLANG_TORCH_PROFILER_DIR",),
            token_options=("--api-key", "--admin-api-key"),
            stopped=r"not in progress",
            running=r"already in progress",
        ),
        ProfilerRow(
            engine="tensorrt-llm",
            source=_TRTLLM,
            proof=("/kv_cache_events", "/perf_metrics"),
            fields={"dir": "output_dir", "steps": "num_steps", "start_step": "start_step", "activities": "activities"},
            folder_variables=("TLLM_TORCH_PROFILER_DIR",),
            switch_on=("gdbext run --profile -- trtllm-serve ... (the routes came in May 2026, #13872)",),
            running=r"already in progress",
        ),
        ProfilerRow(
            engine="vllm",
            source=_VLLM,
            proof=("/version", "/tokenize", "/v1/completions"),
            fields={"steps": "max_iterations", "start_step": "delay_iterations", "prefix": "profile_prefix"},
            steps_limited_by="max_iterations",
            folder_options=("--profiler-config.torch_profiler_dir", "--profiler-config"),
            folder_key="torch_profiler_dir",
            folder_variables=("VLLM_TORCH_PROFILER_DIR",),
            switch_on=(
                'vllm serve ... --profiler-config \'{"profiler":"torch","torch_profiler_dir":"/DIR"}\' (since 0.13)',
                "VLLM_TORCH_PROFILER_DIR=/DIR vllm serve ... (before 0.13, and vLLM-MindSpore)",
            ),
            running=r"already",
            notes=("vLLM may take ten minutes to write the traces of a long profile; --flush sets how long we wait",),
        ),
    )
}
"""By the engine's name, the most telling proof first: SGLang has most of vLLM's routes too."""

RECOGNISES = "/openapi.json"
"""What is asked (GET) of a server that is recognised by its routes alone."""

STEPS_A_SECOND = 500
"""No engine makes more steps: so many are handed to the engine for each second, so that it stops when we cannot."""

REQUEST_PATHS: Tuple[Tuple[str, str], ...] = (
    ("messages", "/v1/chat/completions"),
    ("prompt", "/v1/completions"),
    ("text", "/generate"),
    ("input_ids", "/generate"),
    ("input", "/v1/embeddings"),
)
"""A key that only the body of one kind of request has -> where that goes (OpenAI's API; SGLang's own /generate)."""

FRONT_END = r".+\.async_llm\..+"
"""A trace of a front end, beside those of the ranks (vllm async_llm.py)."""

STAGE = r"-(?P<stage>[A-Za-z]\w*)\.trace\.json"
"""Which stage a trace is of, behind its rank (sglang profiler_manager.py)."""

ASCEND_TRACE = r".+_ascend_(?:pt|ms)"
"""A folder that torch_npu or MindSpore write for one rank: {host}_{pid}_{time}, or vLLM-Ascend's names of ranks."""

ASCEND_PID = r"_(?P<pid>\d+)_\d+_ascend_(?:pt|ms)$"
