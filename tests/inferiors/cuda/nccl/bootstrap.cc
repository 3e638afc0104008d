/* How the ranks of a communicator find each other: each tells the root where it listens, the root tells each where the
 * next rank of the ring is, and what all must know goes round the ring.
 */
#include "comm.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>

struct extInfo {
    int rank, nranks;
    ncclSocket listenRoot, listenRing;  // where the root, and where the previous rank, reach this one
};

struct bootstrapRootArgs {
    ncclSocket* listenSock;
    uint64_t magic;
};

NCCL_FRAME static ncclResult_t bootstrapNetSend(ncclSocket* sock, const void* data, size_t size) {
    return ncclSocketSend(sock, data, size);
}

NCCL_FRAME static ncclResult_t bootstrapNetRecv(ncclSocket* sock, void* data, size_t size) {
    return ncclSocketRecv(sock, data, size);
}

static ncclResult_t sendRingAddresses(const std::vector<extInfo>& ranks) {
    for (size_t i = 0; i < ranks.size(); i++) {
        ncclSocket sock;
        const ncclSocket& next = ranks[(i + 1) % ranks.size()].listenRing;
        NCCLCHECK(ncclSocketConnect(&sock, &ranks[i].listenRoot.addr, ranks[i].listenRoot.addrLen));
        NCCLCHECK(bootstrapNetSend(&sock, &next, sizeof next));
        close(sock.fd);
    }
    return ncclSuccess;
}

/* Thread of the rank that made the unique id: ends when every rank has come. */
NCCL_FRAME static void* bootstrapRoot(void* rargs) {
    bootstrapRootArgs* args = static_cast<bootstrapRootArgs*>(rargs);
    std::vector<extInfo> ranks;
    int c = 0, nranks = 0;
    do {
        ncclSocket sock;
        extInfo info;
        if (ncclSocketAccept(&sock, args->listenSock) || bootstrapNetRecv(&sock, &info, sizeof info))
            return nullptr;
        close(sock.fd);
        nranks = info.nranks;
        ranks.resize(static_cast<size_t>(nranks));
        ranks[static_cast<size_t>(info.rank)] = info;
        c++;
    } while (c < nranks);
    sendRingAddresses(ranks);
    close(args->listenSock->fd);
    delete args->listenSock;
    delete args;
    return nullptr;
}

ncclResult_t bootstrapGetUniqueId(ncclBootstrapHandle* handle) {
    auto* args = new bootstrapRootArgs{new ncclSocket, 0};
    NCCLCHECK(ncclSocketListen(args->listenSock));
    args->magic = handle->magic = (job_now() << 16) ^ static_cast<uint64_t>(getpid());
    handle->addr = args->listenSock->addr;
    handle->addrLen = args->listenSock->addrLen;
    pthread_t thread;
    if (pthread_create(&thread, nullptr, bootstrapRoot, args))
        return ncclSystemError;
    pthread_detach(thread);
    return ncclSuccess;
}

NCCL_FRAME ncclResult_t bootstrapInit(const ncclBootstrapHandle* handle, ncclComm* comm) {
    ncclSocket root, fromRoot, next;
    extInfo info;
    info.rank = comm->rank;
    info.nranks = comm->nRanks;
    NCCLCHECK(ncclSocketListen(&info.listenRoot));
    NCCLCHECK(ncclSocketListen(&info.listenRing));
    NCCLCHECK(ncclSocketConnect(&root, &handle->addr, handle->addrLen));
    NCCLCHECK(bootstrapNetSend(&root, &info, sizeof info));
    close(root.fd);

    NCCLCHECK(ncclSocketAccept(&fromRoot, &info.listenRoot));  // the root calls when all have come
    NCCLCHECK(bootstrapNetRecv(&fromRoot, &next, sizeof next));
    close(fromRoot.fd);
    close(info.listenRoot.fd);

    auto* state = comm->bootstrap = new bootstrapState{};
    state->rank = comm->rank;
    state->nranks = comm->nRanks;
    NCCLCHECK(ncclSocketConnect(&state->ringSendSocket, &next.addr, next.addrLen));
    NCCLCHECK(ncclSocketAccept(&state->ringRecvSocket, &info.listenRing));
    close(info.listenRing.fd);
    return ncclSuccess;
}

/* Each rank's `size` bytes at its place of allData go round; afterwards every rank has all of them. */
NCCL_FRAME ncclResult_t bootstrapAllGather(bootstrapState* state, void* allData, size_t size) {
    char* data = static_cast<char*>(allData);
    const int rank = state->rank, nranks = state->nranks;
    for (int i = 0; i < nranks - 1; i++) {
        const size_t sendSlice = static_cast<size_t>((rank - i + nranks) % nranks);
        const size_t recvSlice = static_cast<size_t>((rank - i - 1 + nranks) % nranks);
        NCCLCHECK(bootstrapNetSend(&state->ringSendSocket, data + sendSlice * size, size));
        NCCLCHECK(bootstrapNetRecv(&state->ringRecvSocket, data + recvSlice * size, size));
    }
    return ncclSuccess;
}

NCCL_FRAME ncclResult_t bootstrapBarrier(bootstrapState* state) {
    std::vector<char> present(static_cast<size_t>(state->nranks));
    return bootstrapAllGather(state, present.data(), 1);
}

void bootstrapClose(bootstrapState* state) {
    close(state->ringSendSocket.fd);
    close(state->ringRecvSocket.fd);
    delete state;
}
