/* The helper threads of a communicator. They have no work here, and wait for it as the real ones do. */
#include "comm.h"

#include <poll.h>
#include <unistd.h>

NCCL_FRAME static void* ncclProxyService(void* _args) {
    ncclProxyState* proxyState = static_cast<ncclProxyState*>(_args);
    pollfd pollfds[1] = {{proxyState->wakeup[0], POLLIN, 0}};
    int stop = 0;
    while (!stop) {
        poll(pollfds, 1, -1);
        char message;
        // A peer that is still connected keeps the service alive; "s" says that all have stopped.
        stop = pollfds[0].revents && read(proxyState->wakeup[0], &message, 1) == 1 && message == 's';
    }
    return nullptr;
}

NCCL_FRAME static void ncclProxyGetPostedOps(ncclProxyState* proxyState, int* added) {
    pthread_mutex_lock(&proxyState->mutex);
    while (!proxyState->posted && !proxyState->stop)
        pthread_cond_wait(&proxyState->cond, &proxyState->mutex);
    *added = proxyState->posted;
    proxyState->posted = 0;
    pthread_mutex_unlock(&proxyState->mutex);
}

NCCL_FRAME static void* ncclProxyProgress(void* proxyState_) {
    ncclProxyState* proxyState = static_cast<ncclProxyState*>(proxyState_);
    int added = 0;
    while (!__atomic_load_n(&proxyState->stop, __ATOMIC_ACQUIRE))
        ncclProxyGetPostedOps(proxyState, &added);
    return nullptr;
}

ncclResult_t ncclProxyCreate(ncclComm* comm) {
    ncclProxyState* state = comm->proxyState = new ncclProxyState;
    state->tpRank = comm->rank;
    state->tpnRanks = comm->nRanks;
    if (pipe(state->wakeup) || pthread_create(&state->thread, nullptr, ncclProxyService, state) ||
        pthread_create(&state->threadProgress, nullptr, ncclProxyProgress, state))
        return ncclSystemError;
    return ncclSuccess;
}

/* The service ends only when the peers have stopped too: after an abort in the middle of a collective they have not. */
ncclResult_t ncclProxyStop(ncclComm* comm) {
    ncclProxyState* state = comm->proxyState;
    pthread_mutex_lock(&state->mutex);
    __atomic_store_n(&state->stop, 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&state->cond);
    pthread_mutex_unlock(&state->mutex);
    const char message = *comm->abortFlag ? 'a' : 's';
    if (write(state->wakeup[1], &message, 1) != 1)
        return ncclSystemError;
    pthread_join(state->threadProgress, nullptr);
    return ncclSuccess;
}
