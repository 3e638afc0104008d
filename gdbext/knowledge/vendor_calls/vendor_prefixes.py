"""Whose calls begin how: runtimes and drivers of accelerators, and libraries of collectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class Vendor:
    """The calls of one runtime or library are `prefix` and a verb of `verbs`."""

    name: str  # begins the ids of its rules
    prefix: str  # regex
    source: str
    argument_names: bool = False  # collectives: parameters are called as NCCL's, in libraries with debug information


DEVICES: Tuple[Vendor, ...] = (
    Vendor("cuda", r"cuda|cu", "cuda_runtime_api.h, cuda.h 12.9"),
    Vendor(
        "hip",
        r"(?:hip::)?i?hip(?:Ext)?",
        "hip_runtime_api.h: the names of CUDA's runtime and driver with one prefix; ROCm/clr hipamd/src: the public"
        " function calls one of the same name in `hip::`, and that `ihip...`",
    ),
    Vendor("acl", r"aclrt|acl|rt", "CANN acl/acl_rt.h and runtime/rt.h: verb and noun may change places"),
    Vendor("musa", r"musa|mu", "MUSA toolkit: the names of CUDA's with musa and mu"),
    Vendor("maca", r"mc", "MACA toolkit mc_runtime_api.h: the names of CUDA's runtime with mc"),
    Vendor("cambricon", r"cnrt|cn", "Cambricon cnrt.h, cn_api.h: a stream is a queue, an event a notifier"),
    Vendor("tops", r"tops", "Enflame tops_runtime_api.h: the names of HIP's with tops"),
    Vendor("level-zero", r"(?:(?:L0|loader|driver|validation_layer)::)?ze", "oneAPI Level Zero ze_api.h"),
    Vendor(
        "unified-runtime",
        r"(?:ur(?:_\w+)?::(?:\w+::)?)?ur(?:Enqueue)?(?:USM)?",
        "oneapi-src/unified-runtime ur_api.h: loader, adapters and layers call functions of one name",
    ),
)

COLLECTIVES: Tuple[Vendor, ...] = (
    Vendor("nccl", r"p?nccl", "nccl.h; RCCL, MSCCL and MSCCL++ export the same names", argument_names=True),
    Vendor("hccl", r"[hH]ccl", "CANN hccl.h; Habana's hccl.h"),
    Vendor("mccl", r"mccl", "mccl.h of MUSA and of MACA: the names of NCCL's", argument_names=True),
    Vendor("cncl", r"cncl", "Cambricon cncl.h", argument_names=True),
    Vendor("eccl", r"eccl", "Enflame eccl.h", argument_names=True),
    Vendor("bkcl", r"bkcl_?", "Kunlun XPU bkcl.h: bkcl_all_reduce, bkcl_init_rank"),
    Vendor("flagcx", r"flagcx", "flagcx.h: one interface before several of these libraries", argument_names=True),
    Vendor("oneccl", r"ccl::(?:v\d+::)?", "oneCCL oneapi/ccl/api_functions.hpp"),
    Vendor("nvshmem", r"nvshmemx?_(?:\w+_)??", "nvshmem_api.h, nvshmemx_api.h: the type may stand before the verb"),
)
