#include "plan.h"

// tests/inferiors/scenarios.py says what a diagnosis of each should find.
const Hang HANGS[] = {
    {"pinned-alloc", Fault::PinnedAlloc, false, "a rank is in cudaMallocHost while collectives are in flight"},
    {"pinned-free", Fault::PinnedFree, false, "a rank is in cudaFreeHost while collectives are in flight"},
    {"device-free", Fault::DeviceFree, false, "a rank is in cudaFree while collectives are in flight"},
    {"cublas-first-use", Fault::CublasFirstUse, false, "a rank makes its first call on a cuBLAS handle meanwhile"},
    {"lazy-module-load", Fault::ModuleLoad, false, "a rank loads a kernel (cudaFuncSetAttribute) meanwhile"},
    {"lazy-module-launch", Fault::LazyLaunch, false, "a rank launches a kernel that is not loaded yet meanwhile"},
    {"launch-queue-full", Fault::FillQueue, false, "a rank has filled its launch queue behind a collective"},
    {"missing-rank-crash", Fault::Crash, false, "a rank was killed; the others are in a collective"},
    {"missing-rank-io", Fault::ReadPipe, false, "a rank reads a pipe; the others are in a collective"},
    {"missing-rank-sleep", Fault::Sleep, false, "a rank sleeps in engine code; the others are in a collective"},
    {"missing-rank-lock", Fault::Lock, false, "a rank waits for a lock whose owner reads a pipe"},
    {"collective-mismatch", Fault::OtherCollective, true, "one rank gathers, the others reduce"},
    {"collective-mismatch-count", Fault::OtherCount, true, "one rank reduces another number of elements"},
    {"collective-mismatch-async", Fault::OtherCollective, false, "one rank gathers; all wait later, for the stream"},
    {"collective-mismatch-launch", Fault::OtherCollective, false, "the same with CUDA_LAUNCH_BLOCKING=1: all wait inside NCCL"},
    {"multi-comm-order", Fault::OtherOrder, true, "one rank uses two communicators in the other order"},
    {"init-absent-rank", Fault::InitAbsent, false, "ncclCommInitRank with a rank that was never started"},
    {"init-late-rank", Fault::InitLate, false, "ncclCommInitRank with a rank that still reads its weights"},
    {"sigbus", Fault::ShmFull, false, "a rank stopped by SIGBUS in a shared segment that does not fit"},
    {"teardown", Fault::Abort, false, "a rank is in ncclCommAbort, joining a proxy thread"},
    {"healthy-slow", Fault::SlowKernels, false, "long kernels, but every step ends"},
    {"healthy-idle", Fault::Idle, false, "all ranks wait for a request"},
    {"healthy-busy", Fault::CpuBusy, false, "the CPU computes between the collectives"},
};
const int HANG_COUNT = sizeof HANGS / sizeof *HANGS;

const Hang* find_hang(const std::string& name) {
    for (const Hang& hang : HANGS)
        if (name == hang.name)
            return &hang;
    return nullptr;
}

Fault Plan::fault(int step) const {
    const bool healthy = is(Fault::SlowKernels) || is(Fault::Idle) || is(Fault::CpuBusy);
    const bool hit = healthy ? step >= FAULT_STEP : step == FAULT_STEP && hits_this_rank();
    return hit ? hang->fault : Fault::None;
}

bool Plan::stops_before_collective(int step) const {
    switch (fault(step)) {
    case Fault::Crash:
    case Fault::ReadPipe:
    case Fault::Sleep:
    case Fault::Lock:
    case Fault::Abort:
        return true;
    default:
        return gathers_early(step);
    }
}

bool Plan::gathers_early(int step) const {
    switch (fault(step)) {
    case Fault::PinnedAlloc:
    case Fault::PinnedFree:
    case Fault::DeviceFree:
    case Fault::CublasFirstUse:
    case Fault::ModuleLoad:
    case Fault::LazyLaunch:
    case Fault::FillQueue:
        return true;
    default:
        return false;
    }
}
