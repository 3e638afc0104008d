"""Why a job that runs is slow: the causes that profiles show, how each is recognised, and what to do."""

from typing import Mapping, Tuple

from gdbext.knowledge.row_kinds import RemedyRule, Signature

LATE_CAUSES: Mapping[str, str] = {
    "late-rank": "one rank (or a few) repeatedly comes late to the collectives, and all others wait for it",
    "rotating-late-rank": "each time a different rank comes late to the collective",
    "slow-transfer": "the ranks arrive together, but some transfers take far longer than others of the same size",
    "imbalance": "the ranks have unequal work: many come late, by different amounts",
    "not-late": "the ranks arrive at their collectives together, and no transfer stands out",
}
"""Labels of `gdbext trace diagnose`; "unknown" is the sixth."""

LATE_SIGNATURES: Tuple[Signature, ...] = (
    Signature(
        "late-rank",
        "one rank causes most of the waiting time of the others",
        "its kernels take longer (a slow or throttled GPU, more work), or its host launches them late (Python, data, "
        "compilation, a busy processor)",
        "traceml#252, traceml#374; pytorch/pytorch#128292",
        ("_persistent",),
    ),
    Signature(
        "rotating-late-rank",
        "at each collective one rank arrives clearly last, each time a different one",
        "work that ranks do at different times: garbage collection, data loading, a checkpoint, another process on "
        "the same processor, requests that go to one rank at a time",
        "traceml#374",
        ("_rotating",),
    ),
    Signature(
        "slow-transfer",
        "the transfers of some collectives (from the last arrival to the end) take at least 1.5 times as long as "
        "others of the same kind and size",
        "the link is degraded or shared with other jobs, or compute kernels use the multiprocessors or memory "
        "bandwidth that the collective needs",
        "RFC of vLLM: skew and transfer of collectives",
        ("_slow",),
    ),
    Signature(
        "imbalance",
        "several ranks are late by different amounts, and their work before the collective differs by the same amounts",
        "experts, sequences or layers are distributed unevenly over the ranks",
        "pytorch/pytorch#128292; sglang's expert balancer",
        ("_uneven",),
    ),
    Signature(
        "not-late",
        "waiting for others takes less than 3 % of the time, and transfers of the same size take about the same time",
        "a slow job without a late rank is slow everywhere: in its kernels, in its launches or in all transfers",
        "RFC of vLLM: skew and transfer of collectives",
        ("_even",),
    ),
)

REMEDY_BEFORE: Mapping[str, RemedyRule] = {
    "kernel": RemedyRule(
        "late-rank",
        "Compare the late rank's GPU clocks, power and temperature (nvidia-smi -q -d "
        "CLOCK,POWER,TEMPERATURE,PERFORMANCE) and its input shapes with those of the other ranks",
        "a kernel that takes longer on one rank runs on a slower GPU or has more work",
        "pytorch/pytorch#128292",
    ),
    "idle": RemedyRule(
        "late-rank",
        "See what the late rank's CPU threads do between its kernels: gdbext diagnose --samples 3 PID, or py-spy",
        "a GPU that runs no kernel waits for the CPU to launch one",
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
        "Pin each rank to its own CPU cores (numactl, taskset), and see whether it still loses them: grep "
        "nonvoluntary /proc/PID/task/*/status, twice",
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
        "See in the trace which kernels run during the slow transfers, and leave multiprocessors free for the "
        "transfers",
        "a collective shares multiprocessors and memory bandwidth with kernels that run at the same time",
        "RFC of vLLM: skew and transfer of collectives",
    ),
    RemedyRule(
        "imbalance",
        "Distribute the work evenly: place experts by load, batch sequences by length, split layers by cost",
        "the rank with the most work sets the pace of all",
        "sglang's expert balancer",
    ),
    RemedyRule(
        "not-late",
        "Reduce the share of communication and idle time: use fewer and larger collectives, overlap them with "
        "compute, use CUDA graphs",
        "no rank waits for another, so faster single ranks would not help",
        "RFC of vLLM: skew and transfer of collectives",
    ),
)
