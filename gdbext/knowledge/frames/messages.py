"""Lines printed beside a stack that say what its thread died or waited in."""

from __future__ import annotations

from gdbext.knowledge.schema import MessageRule

RULES = (
    MessageRule(r"(Bus error|SIGBUS|[Ss]ignal[: ]+7\b|BUS_ADRERR)", "sigbus", "Megatron-LM#516"),
    MessageRule(
        r"(Segmentation fault|SIGSEGV|SIGABRT|SIGILL|SIGFPE|Fatal Python error|Aborted \(core dumped\)"
        r"|[Ss]ignal[: ]+(4|6|8|11)\b)",
        "exited-or-crashed",
        "sgl-project/sglang#4205; faulthandler",
    ),
    MessageRule(
        r"(CUDA (runtime )?error|CUBLAS_STATUS_(?!SUCCESS)|cudaError[A-Z]\w+|AcceleratorError)",
        "cuda-error-throw",
        "check functions",
    ),
    MessageRule(
        r"(store->get\(|c10d key-value store|TCPStore\b.*(time|Time)|Timed out after .* waiting for"
        r"|wait timeout .* keys?:)",
        "store-wait",
        "NVIDIA/nccl#865",
    ),
)
