/* What a rank of RTP-LLM does between a request and its answer, in small: a thread `normal_engine_loop` whose
 * NormalEngine::step takes a request, sends it to the follower, and runs NormalExecutor::process on both ranks, each of
 * which ends in an all-reduce. The arithmetic stands for a model, two sockets for gRPC and for NCCL.
 */
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <pthread.h>
#include <queue>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#define FRAME __attribute__((noinline)) /* is seen on a stack, as in the engine */

namespace rtp_llm {

static void all(ssize_t done, size_t wanted) {
    if (done != (ssize_t)wanted)
        throw std::runtime_error("the other rank is gone");
}

/* Followers wait in its read() while there is no work. */
struct CpuTpBroadcaster {
    int tp_rank, socket;

    FRAME void broadcast(int64_t* data, size_t count) {
        const size_t bytes = count * sizeof(*data);
        if (tp_rank == 0)
            all(write(socket, data, bytes), bytes);
        else
            all(read(socket, data, bytes), bytes);
    }
};

FRAME void execAllReduce(CpuTpBroadcaster& tp, int64_t* data, size_t count) {
    std::vector<int64_t> other(count);
    const size_t bytes = count * sizeof(*data);
    all(write(tp.socket, data, bytes), bytes);
    all(read(tp.socket, other.data(), bytes), bytes);
    for (size_t i = 0; i < count; i++)
        data[i] += other[i];
}

struct GptModelInputs {
    int64_t request_id = 0, context_batch_size = 0;
};

class NormalExecutor {
public:
    explicit NormalExecutor(CpuTpBroadcaster& tp): tp_(tp) {}

    FRAME int64_t process(const GptModelInputs& inputs, int64_t token_count) {
        int64_t logits[2] = {token_count, token_count * (tp_.tp_rank + 1)};
        forward_count_++;
        execAllReduce(tp_, logits, 2);
        return logits[1] / inputs.context_batch_size;
    }

private:
    CpuTpBroadcaster& tp_;
    int64_t forward_count_ = 0;
};

struct GenerateStream {
    int64_t token_count = 0, answer = 0;
    bool finished = false;
};

class NormalEngine {
public:
    NormalEngine(int tp_rank, int socket): tp_{tp_rank, socket}, executor_(tp_) {
        loop_ = std::thread([this] { loop(); });
    }

    int64_t enqueue(int64_t token_count) {
        GenerateStream stream;
        stream.token_count = token_count;
        std::unique_lock<std::mutex> lock(mutex_);
        waiting_.push(&stream);
        changed_.notify_all();
        changed_.wait(lock, [&] { return stream.finished; });
        return stream.answer;
    }

private:
    FRAME void loop() {
        pthread_setname_np(pthread_self(), "normal_engine_l"); /* normal_engine_loop, cut to 15 bytes */
        try {
            while (true)
                step();
        } catch (const std::exception&) {
            _exit(1);
        }
    }

    FRAME void step() {
        GenerateStream* stream = tp_.tp_rank == 0 ? schedule() : nullptr;
        int64_t message[2] = {++request_id_, stream ? stream->token_count : 0};
        tp_.broadcast(message, 2);
        GptModelInputs inputs;
        inputs.request_id = message[0];
        inputs.context_batch_size = 1;
        const int64_t answer = executor_.process(inputs, message[1]);
        if (!stream)
            return;
        std::lock_guard<std::mutex> lock(mutex_);
        stream->answer = answer;
        stream->finished = true;
        changed_.notify_all();
    }

    FRAME GenerateStream* schedule() {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [&] { return !waiting_.empty(); });
        GenerateStream* first = waiting_.front();
        waiting_.pop();
        return first;
    }

    CpuTpBroadcaster tp_;
    NormalExecutor executor_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::queue<GenerateStream*> waiting_;
    int64_t request_id_ = 0;
    std::thread loop_;
};

}  // namespace rtp_llm

extern "C" void* rtp_start(int tp_rank, int socket) {
    return new rtp_llm::NormalEngine(tp_rank, socket);
}

extern "C" int64_t rtp_generate(void* engine, int64_t token_count) {
    return static_cast<rtp_llm::NormalEngine*>(engine)->enqueue(token_count);
}
