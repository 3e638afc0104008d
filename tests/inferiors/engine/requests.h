/* Where the work comes from: rank 0 has a queue, and tells the other ranks over Unix sockets. */
#pragma once

#include "plan.h"

#include <condition_variable>
#include <mutex>
#include <vector>

namespace rtp_llm {

/* Rank 0 writes a step's number to each follower, which reads it. */
class CpuTpBroadcaster {
public:
    CpuTpBroadcaster(int rank, int world, int note);
    void broadcast(int* step);

private:
    int rank_;
    std::vector<int> sockets_;
};

}  // namespace rtp_llm

class RequestSource {
public:
    explicit RequestSource(const Plan& plan);
    /* Returns when there is work for this step; in an idle job that is never from FAULT_STEP on. */
    void next(int step);

private:
    void wait_for_request(int step);

    const Plan& plan_;
    std::mutex mutex_;
    std::condition_variable arrived_;
    rtp_llm::CpuTpBroadcaster broadcaster_;
};
