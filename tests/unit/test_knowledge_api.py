"""The grammar of public calls: each vendor and verb once, and vendors that no row has."""

import pytest

from gdbext.analysis.stacks.thread_kind import rules_matching
from gdbext.model.stack import Frame

KNOWN = [
    ("cudaMallocHost", "pinned-host-alloc"),
    ("cuMemHostAlloc", "pinned-host-alloc"),
    ("hipHostMalloc", "pinned-host-alloc"),
    ("aclrtMallocHost", "pinned-host-alloc"),
    ("musaHostAlloc", "pinned-host-alloc"),
    ("mcMallocHost", "pinned-host-alloc"),
    ("cudaMallocAsync", "device-alloc"),
    ("cuMemCreate", "device-alloc"),
    ("hipExtMallocWithFlags", "device-alloc"),
    ("rtMalloc", "device-alloc"),
    ("aclrtMallocPhysical", "device-alloc"),
    ("cuMemFree_v2", "device-free"),
    ("hipFree", "device-free"),
    ("aclrtFree", "device-free"),
    ("cuModuleLoadDataEx", "module-load"),
    ("musaLaunchKernel", "kernel-launch"),
    ("hipModuleLaunchKernel", "kernel-launch"),
    ("cnrtInvokeKernel", "kernel-launch"),
    ("cuLaunchKernel_ptsz", "kernel-launch"),
    ("cudaGraphLaunch", "kernel-launch"),
    ("cudaStreamSynchronize", "stream-sync"),
    ("aclrtSynchronizeStreamWithTimeout", "stream-sync"),
    ("rtStreamSynchronize", "stream-sync"),
    ("muStreamSynchronize", "stream-sync"),
    ("mcStreamSynchronize", "stream-sync"),
    ("cnrtQueueSync", "stream-sync"),
    ("zeCommandQueueSynchronize", "stream-sync"),
    ("zeFenceHostSynchronize", "stream-sync"),
    ("aclrtSynchronizeEvent", "event-sync"),
    ("hipEventQuery", "event-sync"),
    ("cuCtxSynchronize", "device-sync"),
    ("aclrtSynchronizeDevice", "device-sync"),
    ("hipDeviceSynchronize", "device-sync"),
    ("hipMemcpyWithStream", "memcpy-sync"),
    ("aclrtMemcpy", "memcpy-sync"),
    ("pncclAllReduce", "nccl-group-launch"),
    ("mcclAllReduce", "nccl-group-launch"),
    ("bkcl_all_reduce", "nccl-group-launch"),
    ("HcclAllGatherV", "nccl-group-launch"),
    ("cnclBroadcast", "nccl-group-launch"),
    ("ccl::v1::allreduce", "nccl-group-launch"),
    ("ccl::reduce_scatter", "nccl-group-launch"),
    ("nvshmem_barrier_all", "nccl-group-launch"),
    ("nvshmemx_barrier_all_on_stream", "nccl-group-launch"),
    ("nvshmem_float_broadcast", "nccl-group-launch"),
    ("ncclCommInitRankConfig", "nccl-init"),
    ("mcclCommInitRank", "nccl-init"),
    ("HcclGetRootInfo", "nccl-init"),
    ("ncclCommAbort", "nccl-destroy-abort"),
    ("HcclCommDestroy", "nccl-destroy-abort"),
]


@pytest.mark.parametrize(("name", "kind"), KNOWN)
def test_a_public_call(name, kind):
    assert rules_matching(Frame(name))[0].kind == kind


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("ncclAllToAll", "all_to_all"),
        ("ncclAlltoAll", "all_to_all"),
        ("HcclReduceScatter", "reduce_scatter"),
        ("HcclReduce", "reduce"),
        ("mcclBcast", "broadcast"),
        ("ccl::alltoallv", "all_to_all"),
        ("HcclBatchSendRecv", "send_recv"),
        ("ncclRecv", "recv"),
        ("nvshmem_barrier", "barrier"),
    ],
)
def test_the_collective_of_a_call(name, collective):
    assert rules_matching(Frame(name))[0].collective == collective


@pytest.mark.parametrize(
    "name",
    ["cudaStreamCreate", "muteStreamSynchronizer", "mcast", "rtld_lock", "cublasCreate", "cutlass::gemm", "accl"],
)
def test_what_only_begins_alike(name):
    assert not [rule for rule in rules_matching(Frame(name)) if rule.kind != "cublas"]


def test_a_vendor_that_no_row_has_counts_when_its_library_has_the_name():
    rule, by_name = rules_matching(Frame("supaStreamSynchronize", module="/opt/supa/lib/libsupart.so.1"))
    assert (rule.kind, rule.id) == ("stream-sync", "unlisted-stream-sync")
    (rule,) = rules_matching(Frame("xyzclAllReduce".replace("xyzcl", "xyzccl"), module="libxyzccl.so"))
    assert (rule.kind, rule.collective) == ("nccl-group-launch", "all_reduce")
    assert rules_matching(Frame("supaStreamSynchronize", module="/opt/lib/libother.so")) == (by_name,)
    assert by_name.rank < rule.rank
    known = rules_matching(Frame("cudaStreamSynchronize"))[0]
    assert rule.rank < known.rank
