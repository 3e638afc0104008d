"""Traces of jobs that never ran: Kineto's JSON with a known late rank, known clocks and known overlaps."""

import gzip
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

GEMM = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_tn_align8>(T1::Params)"
OTHERS = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>(int)",
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>(flash::Flash_fwd_params)",
    "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0",
)
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
HOST = {
    "data": "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    "compile": "Torch-Compiled Region: compile_fx",
    "first-use": "cuModuleLoadData",
}
TRANSFER = 60.0  # microseconds of an all-reduce


@dataclass
class Plan:
    """A job. `late`: what happens: "" (even), "kernel", "host", "data", "compile", "copy", "first-use", "rotating",
    "transfer", "slow-link", "imbalance"."""

    ranks: int = 4
    steps: int = 12
    layers: int = 4  # collectives a step
    late: str = ""
    who: int = 0
    by: float = 0.6  # of the work before a collective
    kernels: int = 6  # before each collective
    work: float = 400.0  # microseconds before each collective
    jitter: float = 0.02  # of the work, by chance
    offsets: dict = field(default_factory=dict)  # rank -> microseconds that its clock is ahead
    drifts: dict = field(default_factory=dict)  # rank -> microseconds in a second
    hosts: bool = False  # each rank says its host, two ranks a host
    absent: tuple = ()
    named: bool = True  # kernels carry the arguments of torch 2.4
    overlap: int = 0  # slices that overlap on one stream: PDL
    graphs: bool = False
    old: bool = False  # absolute times in whole microseconds
    groups: int = 1  # the ranks form so many groups of their own
    every: int = 1  # the late rank is late at one collective in so many
    seed: int = 1


@dataclass
class Made:
    """Ranks in true time: rank -> slices (cat, name, tid, start, dur, args)."""

    slices: dict
    ends: int = 0


def simulate(plan):
    """True times of all that happens."""
    rng = random.Random(plan.seed)
    now = {rank: 1000.0 + rng.random() * 5 for rank in range(plan.ranks)}
    slices = {rank: [] for rank in range(plan.ranks)}
    correlation = dict.fromkeys(range(plan.ranks), 100)
    per = plan.ranks // plan.groups
    number = 0

    def kernel(rank, name, start, dur, tid=7, cat="kernel", **more):
        correlation[rank] += 1
        args = {"External id": correlation[rank], "device": rank % 8, "context": 1, "stream": tid,
                "correlation": correlation[rank], "registers per thread": 96, "grid": [8, 1, 1], **more}  # fmt: skip
        if plan.graphs:
            args["graph id"], args["graph node id"] = 5, correlation[rank] % 64
        slices[rank].append((cat, name, tid, start, dur, args))
        if cat == "kernel":
            slices[rank].append(
                ("cuda_runtime", "cudaLaunchKernel", "host", start - 8, 4.0, {"correlation": correlation[rank]})
            )

    for step in range(plan.steps):
        begun = dict(now)
        for layer in range(plan.layers):
            number += 1
            extra = {}
            amount = plan.by * plan.work
            if number % plan.every == 0:
                if plan.late == "rotating":
                    extra[number // plan.every % plan.ranks] = amount
                elif plan.late == "imbalance":
                    extra = {rank: amount * rank / (plan.ranks - 1) for rank in range(plan.ranks)}
                elif plan.late in ("kernel", "host", "data", "compile", "copy", "first-use"):
                    extra[plan.who] = amount
            for rank in range(plan.ranks):
                work = plan.work * (1 + plan.jitter * rng.random())
                late = extra.get(rank, 0.0)
                longer = late if plan.late in ("kernel", "imbalance") else 0.0
                start = now[rank]
                for index in range(plan.kernels):
                    dur = work / plan.kernels
                    name = GEMM if index == min(1, plan.kernels - 1) else OTHERS[index % 3]
                    if name is GEMM:
                        dur += longer
                    overlapping = dur + (3.0 * plan.overlap if plan.overlap and index % 2 == 0 else 0.0)
                    kernel(rank, name, start, overlapping - 0.5)
                    start += dur
                if late and not longer:
                    if plan.late == "copy":
                        kernel(rank, "Memcpy HtoD (Pageable -> Device)", start, late - 1, cat="gpu_memcpy")
                    name = HOST.get(plan.late)
                    if name:
                        cat = "cuda_driver" if plan.late == "first-use" else "user_annotation"
                        slices[rank].append((cat, name, "host", start + 1, late - 2, {}))
                    start += late
                now[rank] = start
            for group in range(plan.groups):
                members = range(group * per, group * per + per)
                transfer = TRANSFER * (1 + 0.05 * rng.random())
                if plan.late == "transfer" and step % 2:
                    transfer *= 6
                if plan.late == "slow-link" and group == plan.who:
                    transfer *= 5
                end = max(now[rank] for rank in members) + transfer
                args = {"Collective name": "allreduce", "In msg nelems": 1 << 20, "dtype": "BFloat16",
                        "Group size": per, "Process Group Name": str(group), "Process Group Description": "tp",
                        "Process Group Ranks": str(list(members))}  # fmt: skip
                for rank in members:
                    close = end + rng.random() * 2
                    kernel(rank, REDUCE, now[rank] + 0.2, close - now[rank] - 0.2, 20, **(args if plan.named else {}))
                    now[rank] = close + 1
        for rank in range(plan.ranks):
            slices[rank].append(
                ("user_annotation", f"ProfilerStep#{step}", "host", begun[rank] - 20, now[rank] - begun[rank] - 2, {})
            )
    return slices


def trace_of(plan, rank, slices):
    """The document that the profiler of a rank would write."""
    pid = 4000 + rank
    base = 1790857026000000000
    ahead, drift = plan.offsets.get(rank, 0.0), plan.drifts.get(rank, 0.0)
    zero = 1695835535000000 if plan.old else 4522151000000

    def clock(time):
        value = zero + time + ahead + drift * time / 1e6
        return round(value) if plan.old else round(value, 3)

    begun = clock(0.0)
    events = [
        {"ph": "M", "name": "process_name", "ts": begun, "pid": pid, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "process_name", "ts": begun, "pid": rank % 8, "tid": 0, "args": {"name": "python"}},
        {
            "ph": "M",
            "name": "process_sort_index",
            "ts": begun,
            "pid": rank % 8,
            "tid": 0,
            "args": {"sort_index": 5000000},
        },
        {"ph": "M", "name": "thread_name", "ts": begun, "pid": rank % 8, "tid": 7, "args": {"name": "stream 7"}},
    ]
    for cat, name, tid, start, dur, args in slices:
        on_host = tid == "host"
        begin, end = clock(start), clock(start + dur)
        where = {"pid": pid, "tid": pid} if on_host else {"pid": rank % 8, "tid": tid}
        events.append(
            {"ph": "X", "cat": cat, "name": name, **where, "ts": begin, "dur": round(end - begin, 3), "args": args}
        )
        if "correlation" in args:
            end_of = {"ph": "s"} if on_host else {"ph": "f"}
            more = {} if on_host else {"bp": "e"}
            events.append(
                {**end_of, "id": args["correlation"], **where, "ts": begin, "cat": "ac2g", "name": "ac2g", **more}
            )
    document = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": rank % 8, "name": "NVIDIA H100"}],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": plan.ranks},
        "traceEvents": events,
        "traceName": f"rank{rank}.json",
        "displayTimeUnit": "ms",
    }
    if plan.hosts:
        document["host_name"] = f"node{rank // 2}"
    if not plan.old:
        document["baseTimeNanoseconds"] = base
    return document


def kineto(document):
    """The text as Kineto lays it out."""
    lines = []
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            args = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in event["args"].items())
            where = f'"pid": {event["pid"]}, "tid": {event["tid"]}'
            named = f'"cat": "{event["cat"]}", "name": {json.dumps(event["name"])}'
            times = f'"ts": {event["ts"]}, "dur": {event["dur"]}'
            args = f'"args": {{\n      {args}\n    }}'
            lines.append(f'  {{\n    "ph": "X", {named}, {where},\n    {times},\n    {args}\n  }}')
        elif event["ph"] in "sf":
            more = ', "bp": "e"' if "bp" in event else ""
            lines.append(
                f'  {{\n    "ph": "{event["ph"]}", "id": {event["id"]}, "pid": {event["pid"]}, "tid": {event["tid"]}, '
                f'"ts": {event["ts"]},\n    "cat": "ac2g", "name": "ac2g"{more}\n  }}'
            )
        else:
            lines.append("  " + json.dumps(event, indent=4).replace("\n", "\n  "))
    head = json.dumps(
        {key: value for key, value in document.items() if key not in ("traceEvents", "traceName")}, indent=2
    )
    body = ",\n".join(lines)
    return f'{head[:-2]},\n  "traceEvents": [\n{body}\n  ],\n  "traceName": {json.dumps(document["traceName"])}\n}}\n'


def write(plan, folder, name="rank{rank}.json", packed=False):
    """The files of a job; returns their paths."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    slices = simulate(plan)
    paths = []
    for rank in range(plan.ranks):
        if rank in plan.absent:
            continue
        path = Path(folder) / (name.format(rank=rank) + (".gz" if packed else ""))
        text = kineto(trace_of(plan, rank, slices[rank])).encode()
        path.write_bytes(gzip.compress(text, 1) if packed else text)
        paths.append(str(path))
    return paths
