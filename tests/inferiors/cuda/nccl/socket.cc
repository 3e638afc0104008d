/* Sockets of the bootstrap. They are abstract Unix sockets, so that no network is needed and no file is left; as in the
 * real library they do not block, and the caller tries again and again.
 */
#include "comm.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

static void setNonBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

/* Between two tries: DEMO_WAIT=poll sleeps, otherwise the thread spins. */
static inline __attribute__((always_inline)) void pauseBetweenTries(uint64_t since) {
    static const bool sleeps = getenv("DEMO_WAIT") && !strcmp(getenv("DEMO_WAIT"), "poll");
    if (sleeps)
        poll(nullptr, 0, 10);
    else
        sched_yield();
    JOB_WAITED(job_now() - since);
}

ncclResult_t ncclSocketListen(ncclSocket* sock) {
    sockaddr_un any = {};
    any.sun_family = AF_UNIX;
    sock->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sock->addrLen = sizeof sock->addr;
    // A bare family asks the kernel for a free abstract name.
    if (sock->fd < 0 || bind(sock->fd, reinterpret_cast<sockaddr*>(&any), sizeof any.sun_family) || listen(sock->fd, JOB_RANKS) ||
        getsockname(sock->fd, reinterpret_cast<sockaddr*>(&sock->addr), &sock->addrLen))
        return ncclSystemError;
    setNonBlocking(sock->fd);
    return ncclSuccess;
}

ncclResult_t ncclSocketConnect(ncclSocket* sock, const sockaddr_un* addr, socklen_t addrLen) {
    sock->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(sock->fd, reinterpret_cast<const sockaddr*>(addr), addrLen))
        return ncclSystemError;
    setNonBlocking(sock->fd);
    return ncclSuccess;
}

NCCL_FRAME static ncclResult_t socketTryAccept(ncclSocket* sock, ncclSocket* listenSock, uint64_t since) {
    sock->fd = accept4(listenSock->fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (sock->fd >= 0)
        return ncclSuccess;
    if (errno != EAGAIN && errno != EINTR)
        return ncclSystemError;
    pauseBetweenTries(since);
    return ncclInProgress;
}

NCCL_FRAME static ncclResult_t socketProgressState(ncclSocket* sock, ncclSocket* listenSock, uint64_t since) {
    ncclResult_t result = socketTryAccept(sock, listenSock, since);
    asm volatile("" ::: "memory");
    return result;
}

NCCL_FRAME ncclResult_t ncclSocketAccept(ncclSocket* sock, ncclSocket* listenSock) {
    ncclResult_t result;
    const uint64_t since = job_now();
    do
        result = socketProgressState(sock, listenSock, since);
    while (result == ncclInProgress);
    return result;
}

enum { NCCL_SOCKET_SEND = 0, NCCL_SOCKET_RECV = 1 };

NCCL_FRAME static ncclResult_t socketProgress(int op, ncclSocket* sock, char* data, size_t size, size_t* offset, uint64_t since) {
    ssize_t bytes = op == NCCL_SOCKET_RECV ? recv(sock->fd, data + *offset, size - *offset, 0)
                                           : send(sock->fd, data + *offset, size - *offset, MSG_NOSIGNAL);
    if (bytes > 0)
        *offset += static_cast<size_t>(bytes);
    else if (bytes == 0)
        return ncclRemoteError;  // the other side has closed
    else if (errno == EAGAIN || errno == EINTR)
        pauseBetweenTries(since);
    else
        return ncclSystemError;
    return ncclSuccess;
}

NCCL_FRAME static ncclResult_t socketWait(int op, ncclSocket* sock, char* data, size_t size, size_t* offset) {
    const uint64_t since = job_now();
    while (*offset < size)
        NCCLCHECK(socketProgress(op, sock, data, size, offset, since));
    return ncclSuccess;
}

NCCL_FRAME ncclResult_t ncclSocketSend(ncclSocket* sock, const void* data, size_t size) {
    size_t offset = 0;
    return socketWait(NCCL_SOCKET_SEND, sock, static_cast<char*>(const_cast<void*>(data)), size, &offset);
}

NCCL_FRAME ncclResult_t ncclSocketRecv(ncclSocket* sock, void* data, size_t size) {
    size_t offset = 0;
    return socketWait(NCCL_SOCKET_RECV, sock, static_cast<char*>(data), size, &offset);
}
