"""Work that takes long and looks like a hang to the ranks that wait for it: how it shows on stacks and in children."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class SlowWork:
    """`function` is matched from the start of a frame's name, `file` searched in its file or its library's name.

    `children` is matched in full against the name of a child process (at most 15 bytes). `proof` is what the kernel's
    counters must show between two looks: "cpu" (the rank's own thread), "read", "write" or "child". `innermost`: the
    innermost frame outside the C library must match, and then any thread of the rank may be the one that works.
    """

    id: str
    doing: str  # completes "rank 1 ..."
    source: str
    function: str = ""
    file: str = ""
    children: str = ""
    proof: Tuple[str, ...] = ("cpu",)
    innermost: bool = False


SLOW_WORK: Tuple[SlowWork, ...] = (
    SlowWork(
        "compile-child",
        "waits for a compiler",
        "nvcc --dryrun; triton backends/nvidia/compiler.py; torch/utils/cpp_extension.py, _inductor/cpp_builder.py; "
        "hipcc, bisheng and ccec by their vendors' names, none of them run here",
        children=r"nvcc|cicc|cudafe\+\+|ptxas|nvlink|fatbinary|cc1(plus)?|(g\+\+|gcc|clang(\+\+)?|c\+\+|cc)[\d.-]*"
        r"|ld(\.\w+)?|collect2|lld|as|ninja|cmake|hipcc|bisheng\w*|ccec",
        proof=("child",),
    ),
    SlowWork(
        "pool",
        "waits for the tasks of its pool of processes",
        "multiprocessing/pool.py, joblib/parallel.py",
        function=r"((\w*Result|IMap\w*Iterator|Future|Parallel)\.)?(get|wait|next|__next__|result|_?retrieve)$",
        file=r"(multiprocess(ing)?/pool|joblib/(parallel|_parallel_backends))\.py$",
        proof=("child",),
    ),
    SlowWork(
        "compile",
        "compiles kernels",
        "torch/_inductor, torch/_dynamo, triton, DeepGEMM's and FlashInfer's JIT",
        file=r"(triton/(compiler|backends|runtime/(jit|autotuner))|torch/_(inductor|dynamo)/|flashinfer/jit|deep_gemm/jit"
        r"|torch/utils/cpp_extension|numba/core|cutlass|tilelang/jit|libnvrtc|libnvJitLink|libLLVM)",
        proof=("cpu", "child"),
    ),
    SlowWork(
        "load",
        "loads weights",
        "safetensors/torch.py, torch/serialization.py, vllm model_loader, sglang model_loader, transformers",
        function=r"(load_(weights|model|file|state_dict|checkpoint\w*)|_?load|safe_open|\w*weights_iterator|from_pretrained)$",
        file=r"(safetensors|torch/serialization|model_loader|weight_utils|loader|modeling_utils|gpu_worker|model_runner)",
        proof=("read", "cpu"),
    ),
    SlowWork(
        "save",
        "writes a checkpoint",
        "torch/serialization.py, torch/distributed/checkpoint, safetensors/torch.py",
        function=r"(_?save\w*|_?write\w*|dump\w*)$",
        file=r"(safetensors|torch/serialization|torch/distributed/checkpoint|checkpoint\w*\.py)",
        proof=("write", "cpu"),
    ),
    SlowWork(
        "tokenise",
        "tokenises or prepares input",
        "transformers/tokenization_utils_base.py, tokenizers, tiktoken, sentencepiece; vllm input processors",
        file=r"(transformers/(tokenization|processing|image_processing|feature_extraction)\w*|tokenizers|tiktoken"
        r"|sentencepiece|datasets/(arrow|iterable)\w*|multimodal/)",
        proof=("cpu",),
    ),
    SlowWork(
        "capture",
        "captures CUDA graphs",
        "torch/cuda/graphs.py; vllm gpu_model_runner.capture_model, sglang cuda_graph_runner.capture",
        function=r"(capture(_model|_begin|_end|_one_batch_size|_cuda_graphs?)?|_?dummy_run|warm_?up\w*)$",
        file=r"(torch/cuda/graphs|gpu_model_runner|model_runner|cuda_graph_runner|worker)",
        proof=("cpu",),
    ),
    SlowWork(
        "compute",
        "computes in a numerics library",
        "torch 2.13 and numpy 2.4 (matrix products seen here); names of the others by their packages",
        function=r"(?!c10d|gloo|tensorpipe)",
        file=r"(^lib(torch_cpu|mkl_\w+|\w*openblas\w*|blas|blis|lapack|dnnl|sleef|fftw3\w*|arrow|zstd|z|lz4|snappy)\b"
        r"|^_?(multiarray_umath|umath_linalg|pocketfft\w*|mt19937|generator)\b|(^|/)scipy|^_(flapack|fblas)\b)",
        innermost=True,
    ),
)

FAULTS_PER_SECOND = 100
"""Major page faults from which a process is waiting for its pages: a fault takes 0.1 ms (SSD) to 10 ms (disk)."""
MOVED_PER_SECOND = 1 << 20
"""Bytes a second, read or written, from which a process goes on with that."""
WRITTEN_PER_SECOND = 1 << 15
"""Bytes a second, written during each of several looks, from which a thread that naps in between works on: logs and
heartbeats are less."""
CHILD_CPU = 0.1
"""Fraction of a core from which a child works."""
LOOPS_CPU = 0.3
"""Fraction of a core, of all event loops of a process together, from which these do more than to look for events."""
NO_RATE = 0.005
"""Fraction of a core below which a thread did nothing: to be stopped by a look takes some."""
