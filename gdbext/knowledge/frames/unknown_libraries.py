"""Waits of libraries that no row knows, by the words their functions are named with.

They count for the function in which the C library, or nothing at all, is inside, and behind every other row.
"""

from functools import partial

from gdbext.knowledge.frame_precedence import LEAF, NAMED
from gdbext.knowledge.row_kinds import FrameRule

_CLASS = r"(?!std::|__gnu_cxx::|_?Py|_?pymain|.*[fio]stream)(?:.*::)?"
_VENDOR_PREFIX = r"(?:gpu|cuda|hip|hsa|device|npu|xpu|tpu|accelerator|opencl|vulkan|metal|levelzero|ze|vk|cl|acl|mtl)"
_NOT_BACK = r"(?!\w*(?i:unlock|release|signal_all|notify|post|wake|init|destroy|create|query|get_|is_|set_))"

_NETWORK = (
    r"lib(p?mpi(ch\w*|fort\w*|cxx|_\w+)?|open-(pal|rte)|mca_\w+|oshmem|sma|pmix|pmi2?|prrte|fabric|ucp|uct|ucs|ucc|hcoll|hmca\w*"
    r"|sharp\w*|psm2|psm3|psm_infinipath|cxi|ugni|dmapp|portals|nvshmem\w*|rocshmem\w*|ccl|mpl|gasnet\w*)[-_.\d]*\b|mca_\w+\.so"
)
"""Open MPI, MPICH and its children, PMIx, libfabric, UCX, UCC, hcoll, PSM, Slingshot, OpenSHMEM, oneCCL, GASNet."""
_NETWORK_SOURCE = (
    r"(^|/)((ompi|opal|oshmem|orte)/(mca|runtime|class|request|communicator|dpm|threads)|prov/(psm\d|ofi|cxi|efa|verbs|tcp|sockets|rxm|shm|util)"
    r"|src/(mpid?|mpl|pm|pmi|uc[pst])|(uct|ucp|ucs|ucc|nvshmem)/|ptl_\w+)/"
)

_NOT_PARKED = r"(?!\S{0,200}Parker::)"
"""Rust's parking_lot puts a thread to sleep in `ThreadParker::futex_wait`, whatever it waits for."""

_leaf = partial(FrameRule, leaf=True)

RULES = (
    *(
        _leaf(id, "mpi", r"", source, module=module, file=file, rank=LEAF + 2)
        for id, source, module, file in (
            (
                "library-network",
                "who is in a library that passes messages, in whatever function, waits for one",
                _NETWORK,
                "",
            ),
            ("source-network", "the same, by the file of the source", "", _NETWORK_SOURCE),
        )
    ),
    _leaf(
        "named-lock",
        "mutex",
        rf"{_NOT_PARKED}{_CLASS}{_NOT_BACK}\w*(?i:spin_?lock|mutex_?(down|enter|acquire)|lock_?slow|slow_?lock|lock_?contended|acquire_?(\w+_)?(lock|mutex)"
        r"|(mutex|spin|critical_?section|rw_?lock|futex)(_?\w*_)?_?(lock|wait|acquire|enter|yield)|lock_(wait|acquire|contend\w*)|lock_?nocheck)\w*$"
        rf"|{_CLASS}\w*(?i:mutex|lock|critical_?section)\w*(?:<.*>)?::{_NOT_BACK}\w*(?i:lock|acquire|enter)\w*$",
        "fio#16656, lttng-ust, CoreCLR AwareLock: how locks are named",
        rank=LEAF + 3,
    ),
    _leaf(
        "named-stream-sync",
        "stream-sync",
        rf"{_CLASS}\w*(?i:stream|command_?(queue|buffer|list)|cmd_?(queue|buf\w*|list))\w*(?:<.*>)?(?:::\w*)?"
        r"(?i:synchroni[sz]e(?!r)|finish|drain|wait_?(idle|until|for|finish\w*|complet\w*|done))\w*$"
        rf"|{_CLASS}\w*(?i:synchroni[sz]e(?!r)|wait_?(?:for|on|until))_?(?i:\w*stream|command_?(queue|buffer|list))\w*$",
        "OpenCL, Level Zero, SYCL, Metal: how streams and queues of commands are waited for",
        rank=LEAF + 3,
    ),
    _leaf(
        "named-event-sync",
        "event-sync",
        rf"{_CLASS}\w*(?i:{_VENDOR_PREFIX}_?\w*(event|fence|signal|semaphore|timeline)\w*(?:::\w*)?(wait|synchroni[sz]e(?!r))"
        r"|fences?(?:::|_)?\w*wait|wait_?(for|on)_?\w*fences?)\w*$",
        "HSA, Vulkan, Level Zero, Metal: how events and fences are waited for",
        rank=LEAF + 3,
    ),
    _leaf(
        "named-device-sync",
        "device-sync",
        rf"{_CLASS}\w*(?i:{_VENDOR_PREFIX}_?(synchroni[sz]e(?!r)|wait_?idle|sync|finish|drain)"
        r"|(synchroni[sz]e(?!r)|wait_?(for|on))_?(\w*_)?(gpu|device|npu|xpu|accelerator))\w*$"
        rf"|{_CLASS}\w*(?:[sS]ynchroni[sz]e(?!r)|[wW]ait(?:For|On))\w*(?:GPU|Gpu|Device|NPU|Npu|XPU|Xpu|Accelerator)\w*$",
        "SYCL, Vulkan, MTL: how a device is waited for",
        rank=LEAF + 3,
    ),
    *(
        FrameRule(
            f"called-{id}",
            kind,
            rf"({names})$",
            "Python's own words for it",
            file=r"^<C code>$",
            language="python",
            rank=LEAF,
        )
        for id, kind, names in (
            ("lock", "mutex", "acquire|racquire"),
            ("queue", "ipc-queue", "get|put"),
            ("join", "condvar-idle", "join"),
            ("io", "io", r"recv\w*|accept|select|epoll_wait|waitpid|wait4|sendall|getaddrinfo"),
            ("copy", "memcpy-sync", "item|tolist|nonzero|cpu"),
            ("device", "device-sync", "synchronize"),
        )
    ),
    _leaf(
        "named-progress",
        "mpi",
        r"(?:.*::)?\w+_(?:progress(?:_engine|_wait|_test|_all|_queue)?|poll_(?:cq|eq|tx|rx)|(?:cq|eq)_poll)$",
        "networks: whoever makes progress by itself waits for messages of others",
        rank=NAMED,
    ),
    _leaf(
        "named-wait",
        "condvar-idle",
        rf"{_CLASS}{_NOT_BACK}(?:\w*_)?(?:wait|park|poll|await|sleep|barrier|block_on|spin_until)(?:_\w*|\d*|ed_\w*)$"
        rf"|{_CLASS}{_NOT_BACK}\w*(?:Wait|Park|Poll|Await|Sleep|Barrier|BlockOn|BlockUntil|BlockThread)(?![a-z])\w*$"
        rf"|{_CLASS}{_NOT_BACK}(?:wait|park|await|sleep|block)(?=[A-Z_])\w*$"
        rf"|{_CLASS}(?:thread_join|join|Join|join_all|JoinAll|joinAll|joinThreads?|JoinThreads?)$",
        "how functions that wait are named",
        rank=NAMED,
    ),
)
