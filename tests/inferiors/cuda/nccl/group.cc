/* Groups: collectives are collected, and launched when the outermost group ends. One call alone is a group of its own. */
#include "comm.h"

thread_local int ncclGroupDepth = 0;
thread_local ncclKernelPlan* groupHead = nullptr;
thread_local ncclKernelPlan** groupTail = &groupHead;

void ncclGroupTaskAppend(const ncclInfo* info) {
    *groupTail = new ncclKernelPlan{*info, 0, nullptr};
    groupTail = &(*groupTail)->next;
}

ncclResult_t ncclGroupStartInternal() {
    ncclGroupDepth++;
    return ncclSuccess;
}

NCCL_FRAME static ncclResult_t doLaunches(ncclKernelPlan* head) {
    while (head) {
        ncclKernelPlan* plan = head;
        NCCLCHECK(ncclLaunchPrepare(plan->task.comm, plan));
        NCCLCHECK(ncclLaunchKernel(plan->task.comm, plan));
        head = plan->next;
        delete plan;
    }
    return ncclSuccess;
}

NCCL_FRAME static ncclResult_t groupLaunch(ncclKernelPlan* head) {
    ncclResult_t result = doLaunches(head);
    asm volatile("" ::: "memory");
    return result;
}

NCCL_FRAME ncclResult_t ncclGroupEndInternal() {
    if (--ncclGroupDepth > 0 || !groupHead)
        return ncclSuccess;
    ncclKernelPlan* head = groupHead;
    groupHead = nullptr;
    groupTail = &groupHead;
    ncclResult_t result = groupLaunch(head);
    asm volatile("" ::: "memory");
    return result;
}

extern "C" __attribute__((visibility("default"))) ncclResult_t ncclGroupStart() { return ncclGroupStartInternal(); }

extern "C" __attribute__((visibility("default"))) ncclResult_t ncclGroupEnd() {
    ncclResult_t result = ncclGroupEndInternal();
    asm volatile("" ::: "memory");
    return result;
}
