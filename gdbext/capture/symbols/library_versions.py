"""Releases of what a process runs: by the names of its mapped files and of the Python packages beside them.

Nothing is loaded or run: a file's name carries its release (`libcuda.so.575.57.08`), and so does the folder of a
package's metadata (`torch-2.13.0.dist-info`), as seen through /proc/PID/root.
"""

from __future__ import annotations

import os
import re
from typing import Dict, Iterable, Optional, Set

from gdbext.capture.proc_texts import text_of
from gdbext.safe_open import files

_LIBRARY = re.compile(
    r"/lib(nccl|rccl|cuda|cudart|cublas|cublasLt|cudnn|nvrtc|nvshmem_host|mpi|nvinfer|stdc\+\+)(?:\.so[.-]|-)([\d.]*\d)(?:\.so)?$"
)
_PACKAGES = re.compile(
    r"(torch|triton|vllm|sglang|sgl_kernel|flashinfer\w*|flash_attn\w*|deep_ep|deep_gemm|lmdeploy|tensorrt_llm|rtp_llm\w*"
    r"|mindspore\w*|deepspeed|transformers|safetensors|tokenizers|accelerate|ray|numpy|xformers|nvidia_(?:nccl|cuda_runtime"
    r"|cublas|cudnn|nvshmem|cuda_nvrtc)_cu\d+|llama_cpp_python|megatron_core)-(\d[\w.+!]*)\.(?:dist|egg)-info$",
    re.IGNORECASE,
)
_SITE = re.compile(r"(.*/(?:site|dist)-packages)/")
_MOST_FOLDERS, _MOST_ENTRIES = 8, 20_000


def versions(pid: Optional[int], paths: Iterable[str], proc: str = "/proc") -> Dict[str, str]:
    """Name -> release. `paths` are the files the process has mapped, as it sees them. Empty when nothing tells.
    Without the pid of a process that runs here, only the names of the files tell."""
    found: Dict[str, str] = {}
    folders: Set[str] = set()
    for path in paths:
        library = _LIBRARY.search(path)
        if library:
            found.setdefault(f"lib{library.group(1)}", library.group(2))
        site = _SITE.match(path)
        if site and len(folders) < _MOST_FOLDERS:
            folders.add(site.group(1))
    for folder in sorted(folders) if pid is not None else ():
        found.update(_packages(f"{proc}/{pid}/root{folder}"))
    return dict(sorted(found.items()))


def _packages(folder: str) -> Dict[str, str]:
    try:
        packages = map(_PACKAGES.match, files.names_in(folder, _MOST_ENTRIES))
    except OSError:
        return {}
    return {found.group(1): found.group(2) for found in packages if found}


def of_this_host(proc: str = "/proc") -> Dict[str, str]:
    """The kernel, and the NVIDIA driver where there is one."""
    found = {"kernel": " ".join(os.uname()[index] for index in (0, 2, 4))}
    driver = text_of(f"{proc}/driver/nvidia/version").partition("\n")[0]
    return {**found, "NVIDIA driver": driver[:400].strip()} if driver else found
