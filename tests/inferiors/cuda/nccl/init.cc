/* Making and ending communicators. */
#include "comm.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

constexpr size_t SHM_BUFFER_SIZE = 9637888;  // LL + LL128 + Simple + header, as the real transport asks for

struct ncclPeerInfo {
    int rank, cudaDev;
    uint64_t pidHash;
};

struct ncclCommInitRankAsyncJob {
    ncclComm* comm;
    int nranks, myrank;
    ncclBootstrapHandle handle;
};

extern "C" __attribute__((visibility("default"))) ncclResult_t ncclGetVersion(int* version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

extern "C" __attribute__((visibility("default"))) const char* ncclGetErrorString(ncclResult_t result) {
    return result == ncclSuccess ? "no error" : result == ncclRemoteError ? "remote process exited or there was a network error"
                                                                          : "unhandled error";
}

extern "C" __attribute__((visibility("default"))) ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
    ncclBootstrapHandle handle = {};
    NCCLCHECK(bootstrapGetUniqueId(&handle));
    memset(uniqueId, 0, sizeof *uniqueId);
    memcpy(uniqueId->internal, &handle, std::min(sizeof handle, sizeof uniqueId->internal));
    return ncclSuccess;
}

NCCL_FRAME static ncclResult_t commAlloc(ncclComm* comm, int nranks, int rank, uint64_t magic) {
    comm->startMagic = comm->endMagic = NCCL_MAGIC;
    comm->commHash = magic;
    comm->rank = comm->localRank = rank;
    comm->nRanks = nranks;
    comm->initState = ncclInProgress;
    comm->abortFlag = new uint32_t(0);
    cudaGetDevice(&comm->cudaDev);
    return ncclSuccess;
}

NCCL_FRAME static ncclResult_t initTransportsRank(ncclComm* comm) {
    std::vector<ncclPeerInfo> peers(static_cast<size_t>(comm->nRanks));
    peers[static_cast<size_t>(comm->rank)] = {comm->rank, comm->cudaDev, static_cast<uint64_t>(getpid())};
    NCCLCHECK(bootstrapAllGather(comm->bootstrap, peers.data(), sizeof peers[0]));
    char shmPath[] = "/dev/shm/nccl-XXXXXX";
    NCCLCHECK(ncclShmOpen(shmPath, SHM_BUFFER_SIZE, &comm->shmBuffer));
    NCCLCHECK(bootstrapBarrier(comm->bootstrap));
    return ncclProxyCreate(comm);
}

NCCL_FRAME static ncclResult_t ncclCommInitRankFunc(ncclCommInitRankAsyncJob* job) {
    ncclComm* comm = job->comm;
    NCCLCHECK(commAlloc(comm, job->nranks, job->myrank, job->handle.magic));
    NCCLCHECK(bootstrapInit(&job->handle, comm));
    NCCLCHECK(initTransportsRank(comm));
    comm->meeting = job_find_comm(comm->commHash);
    comm->initState = ncclSuccess;
    return ncclSuccess;
}

/* A single job runs in the caller's thread. */
NCCL_FRAME static ncclResult_t asyncJobLaunch(ncclCommInitRankAsyncJob* job) {
    ncclResult_t result = ncclCommInitRankFunc(job);
    delete job;
    return result;
}

NCCL_FRAME static ncclResult_t ncclCommInitRankDev(ncclComm_t* newcomm, int nranks, ncclUniqueId* commId, int myrank) {
    *newcomm = new ncclComm{};
    auto* job = new ncclCommInitRankAsyncJob{*newcomm, nranks, myrank, {}};
    memcpy(&job->handle, commId->internal, std::min(sizeof job->handle, sizeof commId->internal));
    ncclResult_t result = asyncJobLaunch(job);
    asm volatile("" ::: "memory");
    return result;
}

extern "C" __attribute__((visibility("default"))) ncclResult_t ncclCommInitRank(ncclComm_t* newcomm, int nranks, ncclUniqueId commId,
                                                                                int myrank) {
    ncclResult_t result = ncclCommInitRankDev(newcomm, nranks, &commId, myrank);
    asm volatile("" ::: "memory");
    return result;
}

NCCL_FRAME static ncclResult_t commFree(ncclComm* comm) {
    NCCLCHECK(ncclProxyStop(comm));
    pthread_join(comm->proxyState->thread, nullptr);
    bootstrapClose(comm->bootstrap);
    munmap(comm->shmBuffer, SHM_BUFFER_SIZE);
    comm->startMagic = comm->endMagic = 0;
    delete comm->proxyState;
    delete comm->abortFlag;
    delete comm;
    return ncclSuccess;
}

NCCL_FRAME static ncclResult_t commReclaim(ncclComm* comm) {
    ncclResult_t result = commFree(comm);
    asm volatile("" ::: "memory");
    return result;
}

extern "C" __attribute__((visibility("default"))) ncclResult_t ncclCommDestroy(ncclComm_t comm) { return commReclaim(comm); }

extern "C" __attribute__((visibility("default"))) ncclResult_t ncclCommAbort(ncclComm_t comm) {
    __atomic_store_n(comm->abortFlag, 1, __ATOMIC_RELEASE);
    return commReclaim(comm);
}

extern "C" __attribute__((visibility("default"))) ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
    *asyncError = comm->asyncResult;
    return ncclSuccess;
}

extern "C" __attribute__((visibility("default"))) ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
    *count = comm->nRanks;
    return ncclSuccess;
}

extern "C" __attribute__((visibility("default"))) ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
    *rank = comm->rank;
    return ncclSuccess;
}
