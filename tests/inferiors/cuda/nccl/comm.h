/* Insides of the NCCL stand-in: the names (types, fields, functions) are those a debugger meets in the real library. */
#pragma once

#include "../../job.h"
#include "nccl.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

// A frame per call, as the real library's larger functions give by themselves.
#define NCCL_FRAME __attribute__((noinline, noclone))
#define NCCLCHECK(call)                      \
    do {                                     \
        ncclResult_t checked = (call);       \
        if (checked != ncclSuccess)          \
            return checked;                  \
    } while (0)

constexpr uint64_t NCCL_MAGIC = 0x0280028002800280;

enum ncclFunc_t { ncclFuncBroadcast = 0, ncclFuncReduce = 1, ncclFuncAllGather = 2, ncclFuncReduceScatter = 3,
                  ncclFuncAllReduce = 4, ncclNumFuncs = 8 };

struct ncclSocket {
    int fd = -1;
    sockaddr_un addr = {};
    socklen_t addrLen = 0;
};

/* What a unique id holds: where bootstrapRoot listens. */
struct ncclBootstrapHandle {
    uint64_t magic;
    sockaddr_un addr;
    socklen_t addrLen;
};
static_assert(sizeof(uint64_t) + sizeof(sockaddr_un) <= NCCL_UNIQUE_ID_BYTES, "the address fits into a unique id");

struct bootstrapState {
    ncclSocket ringSendSocket, ringRecvSocket;
    int rank, nranks;
};

struct ncclProxyState {
    int tpRank, tpnRanks;
    pthread_t thread, threadProgress;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    int posted = 0;
    int stop = 0;
    int wakeup[2];
};

struct ncclComm {
    uint64_t startMagic;
    uint64_t commHash;
    int rank, nRanks, cudaDev, localRank;
    uint64_t opCount;
    uint64_t collOpCount;
    uint64_t seqNumber[ncclNumFuncs];
    ncclResult_t asyncResult, initState;
    uint32_t* abortFlag;
    bootstrapState* bootstrap;
    ncclProxyState* proxyState;
    void* shmBuffer;
    job_comm* meeting;  // where the simulated devices of this communicator meet
    ncclComm* groupNext;
    uint64_t endMagic;
};

struct ncclInfo {
    ncclFunc_t coll;
    const char* opName;
    const void* sendbuff;
    void* recvbuff;
    size_t count;
    ncclDataType_t datatype;
    ncclRedOp_t op;
    int root;
    ncclComm* comm;
    cudaStream_t stream;
};

struct ncclKernelPlan {
    ncclInfo task;
    uint64_t sequence;  // of this communicator, over all kinds of collectives
    ncclKernelPlan* next;
};

// enqueue.cc
ncclResult_t ncclEnqueueCheck(ncclInfo* info);
ncclResult_t ncclLaunchPrepare(ncclComm* comm, ncclKernelPlan* plan);
ncclResult_t ncclLaunchKernel(ncclComm* comm, ncclKernelPlan* plan);
// group.cc
ncclResult_t ncclGroupStartInternal();
ncclResult_t ncclGroupEndInternal();
void ncclGroupTaskAppend(const ncclInfo* info);
// bootstrap.cc
ncclResult_t bootstrapGetUniqueId(ncclBootstrapHandle* handle);
ncclResult_t bootstrapInit(const ncclBootstrapHandle* handle, ncclComm* comm);
ncclResult_t bootstrapAllGather(bootstrapState* state, void* allData, size_t size);
ncclResult_t bootstrapBarrier(bootstrapState* state);
void bootstrapClose(bootstrapState* state);
// socket.cc
ncclResult_t ncclSocketListen(ncclSocket* sock);
ncclResult_t ncclSocketConnect(ncclSocket* sock, const sockaddr_un* addr, socklen_t addrLen);
ncclResult_t ncclSocketAccept(ncclSocket* sock, ncclSocket* listenSock);
ncclResult_t ncclSocketSend(ncclSocket* sock, const void* data, size_t size);
ncclResult_t ncclSocketRecv(ncclSocket* sock, void* data, size_t size);
// proxy.cc
ncclResult_t ncclProxyCreate(ncclComm* comm);
ncclResult_t ncclProxyStop(ncclComm* comm);
// shmutils.cc
ncclResult_t ncclShmOpen(char* shmPath, size_t shmSize, void** shmPtr);
