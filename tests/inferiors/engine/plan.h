/* What is going to happen to this job: a row of the table in plan.cc, and who is hit. */
#pragma once

#include <string>

enum class Fault {
    None,
    PinnedAlloc,      // allocates page-locked memory while a gather is in flight on another stream
    PinnedFree,       // frees such memory
    DeviceFree,       // frees device memory
    CublasFirstUse,   // uses a new cuBLAS handle
    ModuleLoad,       // asks for a kernel that is not loaded yet
    LazyLaunch,       // launches such a kernel
    FillQueue,        // launches more kernels than the queue holds behind the gather
    Crash,            // is killed
    ReadPipe,         // waits for a file that nobody writes
    Sleep,            // sleeps in engine code
    Lock,             // waits for a lock of another thread, which reads such a file
    OtherCollective,  // gathers where the others reduce
    OtherCount,       // reduces another number of elements
    OtherOrder,       // uses two communicators in the other order
    InitAbsent,       // was never started
    InitLate,         // reads its weights while the others set up the communicator
    ShmFull,          // finds /dev/shm full: SIGBUS
    Abort,            // aborts its communicator while the others are in a collective
    SlowKernels,      // nobody is hit: every step takes long
    Idle,             // nobody is hit: there is no request
    CpuBusy,          // nobody is hit: the CPU works between the collectives
};

struct Hang {
    const char* name;
    Fault fault;
    bool sync_collectives;  // the engine waits inside each collective's wrapper, as with its debug level on
    const char* about;
};

extern const Hang HANGS[];
extern const int HANG_COUNT;
const Hang* find_hang(const std::string& name);

/* Until this step all is well. */
constexpr int FAULT_STEP = 3;

struct Plan {
    const Hang* hang = nullptr;
    int rank = 0, world = 1, culprit = 1;
    std::string sync = "stream";  // how a step ends: stream, event, device, memcpy, query

    /* The fault of this rank at this step. Healthy jobs have theirs on every rank and in every later step. */
    Fault fault(int step) const;
    /* The same, but on all ranks. */
    bool is(Fault fault) const { return hang->fault == fault; }
    bool hits_this_rank() const { return rank == culprit; }
    /* The rank meets its fault before it comes to the step's collective. */
    bool stops_before_collective(int step) const;
    /* The rank starts its gather before its reduction, so that work is in flight when it meets its fault. */
    bool gathers_early(int step) const;
};
