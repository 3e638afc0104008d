"""Why a job that runs is slow: the causes that profiles show, how each is recognised, and what to do."""

from typing import Mapping, Tuple

from gdbext.knowledge.row_kinds import RemedyRule, Signature

LATE_CAUSES: Mapping[str, str] = {
    "late-rank": "one rank (or a few) repeatedly comes late to the collectives, and all others wait for it",
    "rotating-late-rank": "at each collective a different rank comes late",
    "slow-transfer": "the ranks arrive together, but some transfers take far longer than others of the same size",
    "imbalance": "the ranks have unequal work: many come late, by different amounts",
    "not-late": "the ranks arrive at their collectives together, and no transfer stands out",
}
"""Labels of `gdbext trace diagnose`; "unknown" is the sixth."""

LATE_SIGNATURES: Tuple[Signature, ...] = (
    Signature(
        "late-rank",
        "one rank causes most of the time that the others wait",
        "its kernels take longer (a slow or throttled GPU, more work), or its host launches them late (Python, data, "
        "compilation, a busy processor)",
        "traceml#252, traceml#374; pytorch/pytorch#128292",
        ("_persistent",),
    ),
    Signature(
        "rotating-late-rank",
        "at each collective one rank stands out as the last, a different one in turn",
        "work that each rank does at its own time: garbage collection, a data loader, a checkpoint, another "
        "process on its processor, requests that go to one rank at a time",
        "traceml#374",
        ("_rotating",),
    ),
    Signature(
        "slow-transfer",
        "transfers, from the last arrival to the end, of some collectives take 1.5 times as long as others of the same "
        "kind and size, or more",
        "a link that is degraded or shared, traffic of other jobs, compute kernels that take the collective's "
        "multiprocessors or memory bandwidth",
        "RFC of vLLM: skew and transfer of collectives",
        ("_slow",),
    ),
    Signature(
        "imbalance",
        "several ranks are late by different amounts, and their work before the collective differs as much",
        "experts, sequences or layers are not spread evenly over the ranks",
        "pytorch/pytorch#128292; sglang's expert balancer",
        ("_uneven",),
    ),
    Signature(
        "not-late",
        "waiting for others takes less than 3 % of the time, and transfers of one size take about as long",
        "a slow job without a late rank is slow everywhere: in its kernels, in its launches or in all transfers",
        "RFC of vLLM: skew and transfer of collectives",
        ("_even",),
    ),
)

REMEDY_BEFORE: Mapping[str, RemedyRule] = {
    "kernel": RemedyRule(
        "late-rank",
        "Compare clocks, power and temperature of its GPU with the others (nvidia-smi -q -d CLOCK,PERFORMANCE), and "
        "the shape of its work",
        "a kernel that takes longer on one rank runs on a slower GPU or has more to do",
        "pytorch/pytorch#128292",
    ),
    "idle": RemedyRule(
        "late-rank",
        "Look at what the host of the late rank does between its kernels: gdbext diagnose --samples 3 PID, or py-spy",
        "a device without a kernel waits for its host",
        "traceml#252",
    ),
}
"""Of `late-rank`, by what the rank did before."""

LATE_REMEDIES: Tuple[RemedyRule, ...] = (
    *REMEDY_BEFORE.values(),
    RemedyRule(
        "rotating-late-rank",
        "Run occasional work (garbage collection, checkpoints, loading) at the same step on all ranks",
        "simultaneous pauses cost once; staggered pauses add up over the ranks",
        "traceml#374",
    ),
    RemedyRule(
        "rotating-late-rank",
        "Pin each rank to its own CPU cores (numactl, taskset) and count its involuntary context switches",
        "ranks that share CPU cores delay one another in turns",
        "torch performance tuning guide",
    ),
    RemedyRule(
        "slow-transfer",
        "Measure the links alone (nccl-tests all_reduce_perf with the same size) and read NCCL's choice of algorithm "
        "and transport (NCCL_DEBUG=INFO)",
        "if transfers are slow without other load, the link or its configuration is slow",
        "NVIDIA/nccl-tests",
    ),
    RemedyRule(
        "slow-transfer",
        "See which kernels run beside the slow transfers, and leave multiprocessors free for them",
        "a collective shares multiprocessors and memory bandwidth with the kernels beside it",
        "RFC of vLLM: skew and transfer of collectives",
    ),
    RemedyRule(
        "imbalance",
        "Spread the work evenly: expert placement, sequences by length, layers by cost",
        "the rank with the most work sets the pace of all",
        "sglang's expert balancer",
    ),
    RemedyRule(
        "not-late",
        "Look at the share of communication and idle time: with even ranks, fewer or larger collectives, overlap, or "
        "CUDA graphs make it faster",
        "no rank waits for another",
        "RFC of vLLM: skew and transfer of collectives",
    ),
)
