/* Collectives, and the kernel that runs them on the simulated device: it begins when it comes to the head of its stream,
 * and ends when every rank of the communicator has begun the same collective.
 */
#include "../device.h"
#include "comm.h"

#include <cstring>

struct ncclDevWorkArgs {
    job_comm* meeting;
    int rank, nRanks;
    uint64_t sequence, signature;
};
static_assert(sizeof(ncclDevWorkArgs) <= DEVICE_ARGS, "a launch copies its arguments");

static int stepCollective(void* raw, uint64_t) {
    ncclDevWorkArgs work;
    memcpy(&work, raw, sizeof work);
    job_member* self = &work.meeting->members[work.rank];
    if (self->begun <= work.sequence) {
        self->signature[work.sequence % JOB_RING] = work.signature;
        __atomic_store_n(&self->begun, work.sequence + 1, __ATOMIC_RELEASE);
    }
    for (int peer = 0; peer < work.nRanks; peer++) {
        job_member* member = &work.meeting->members[peer];
        if (__atomic_load_n(&member->begun, __ATOMIC_ACQUIRE) <= work.sequence ||
            member->signature[work.sequence % JOB_RING] != work.signature)
            return 0;
    }
    return 1;
}

static device_kernel ncclDevKernel = {"ncclDevKernel_AllReduce_Sum_f32_RING_LL", stepCollective, sizeof(ncclDevWorkArgs), 1};

NCCL_FRAME ncclResult_t ncclLaunchPrepare(ncclComm* comm, ncclKernelPlan* plan) {
    plan->sequence = comm->collOpCount++;
    comm->seqNumber[plan->task.coll]++;
    return ncclSuccess;
}

NCCL_FRAME ncclResult_t ncclLaunchKernel(ncclComm* comm, ncclKernelPlan* plan) {
    const ncclInfo& task = plan->task;
    const uint64_t signature = task.count << 16 | static_cast<uint64_t>(task.coll) << 8 | static_cast<uint64_t>(task.datatype);
    ncclDevWorkArgs work = {comm->meeting, comm->rank, comm->nRanks, plan->sequence, signature};
    void* args[] = {&work};
    cudaLaunchConfig_t config = {{24, 1, 1}, {512, 1, 1}, 0, task.stream, nullptr, 0};
    const cudaError_t error = cudaLaunchKernelExC(&config, &ncclDevKernel, args);
    asm volatile("" ::"g"(comm), "g"(plan));
    return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

NCCL_FRAME ncclResult_t ncclEnqueueCheck(ncclInfo* info) {
    if (!info->comm || info->comm->startMagic != NCCL_MAGIC)
        return ncclInvalidArgument;
    NCCLCHECK(ncclGroupStartInternal());
    ncclGroupTaskAppend(info);
    ncclResult_t result = ncclGroupEndInternal();
    asm volatile("" ::"r"(info) : "memory");
    return result;
}

// The optimiser must not forget what a debugger wants to read in the frame while the call inside it waits.
#define ENQUEUE_AND_KEEP(info, comm, count, datatype, stream)                                     \
    ncclResult_t result = ncclEnqueueCheck(&(info));                                              \
    asm volatile("" ::"g"(comm), "g"(count), "g"(datatype), "g"(stream));                         \
    return result

#define NCCL_API extern "C" __attribute__((visibility("default"))) ncclResult_t

NCCL_API ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                       ncclComm_t comm, cudaStream_t stream) {
    ncclInfo info = {ncclFuncAllReduce, "AllReduce", sendbuff, recvbuff, count, datatype, op, 0, comm, stream};
    ENQUEUE_AND_KEEP(info, comm, count, datatype, stream);
}

NCCL_API ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
                       cudaStream_t stream) {
    ncclInfo info = {ncclFuncAllGather, "AllGather", sendbuff, recvbuff, sendcount, datatype, ncclSum, 0, comm, stream};
    ENQUEUE_AND_KEEP(info, comm, sendcount, datatype, stream);
}

NCCL_API ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    ncclInfo info = {ncclFuncReduceScatter, "ReduceScatter", sendbuff, recvbuff, recvcount, datatype, op, 0, comm, stream};
    ENQUEUE_AND_KEEP(info, comm, recvcount, datatype, stream);
}

NCCL_API ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream) {
    ncclInfo info = {ncclFuncBroadcast, "Broadcast", sendbuff, recvbuff, count, datatype, ncclSum, root, comm, stream};
    ENQUEUE_AND_KEEP(info, comm, count, datatype, stream);
}
