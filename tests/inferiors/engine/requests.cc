#include "requests.h"

#include "../job.h"
#include "cuda_utils.h"

#include <cstring>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace rtp_llm {

static void require(bool fine, const char* what) {
    if (!fine)
        throw std::runtime_error(std::string("broadcaster: ") + what + ": " + strerror(errno));
}

/* The listening socket has an abstract name that the kernel chooses: nothing to clean up. */
static std::vector<int> accept_followers(int world, int note) {
    sockaddr_un address = {};
    socklen_t size = sizeof address;
    address.sun_family = AF_UNIX;
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(!bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address.sun_family), "bind");
    require(!listen(listener, world), "listen");
    require(!getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
    char pinned[sizeof address + sizeof size] = {};
    memcpy(pinned, &size, sizeof size);
    memcpy(pinned + sizeof size, &address, size);
    job_pin_up(note, pinned, sizeof pinned);
    std::vector<int> sockets;
    for (int follower = 1; follower < world; follower++)
        sockets.push_back(accept(listener, nullptr, nullptr));
    close(listener);
    return sockets;
}

static std::vector<int> connect_to_leader(int note) {
    sockaddr_un address = {};
    socklen_t size = 0;
    char pinned[sizeof address + sizeof size];
    job_read_note(note, pinned, sizeof pinned);
    memcpy(&size, pinned, sizeof size);
    memcpy(&address, pinned + sizeof size, sizeof address);
    const int leader = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(!connect(leader, reinterpret_cast<sockaddr*>(&address), size), "connect");
    return {leader};
}

CpuTpBroadcaster::CpuTpBroadcaster(int rank, int world, int note)
    : rank_(rank), sockets_(rank == 0 ? accept_followers(world, note) : connect_to_leader(note)) {}

ENGINE_FRAME void CpuTpBroadcaster::broadcast(int* step) {
    for (int socket : sockets_) {
        const ssize_t done = rank_ == 0 ? write(socket, step, sizeof *step) : read(socket, step, sizeof *step);
        if (done != sizeof *step)
            _exit(0);  // the job ends
    }
}

}  // namespace rtp_llm

static constexpr int BROADCASTER_NOTE = 2;

RequestSource::RequestSource(const Plan& plan) : plan_(plan), broadcaster_(plan.rank, plan.world, BROADCASTER_NOTE) {}

ENGINE_FRAME void RequestSource::wait_for_request(int step) {
    std::unique_lock<std::mutex> lock(mutex_);
    arrived_.wait(lock, [this, step] { return plan_.fault(step) != Fault::Idle; });
}

void RequestSource::next(int step) {
    if (plan_.rank == 0)
        wait_for_request(step);
    // Only a job that can run dry tells its steps: in the others a rank that is stuck must not stop the rest here.
    if (plan_.is(Fault::Idle))
        broadcaster_.broadcast(&step);
}
