// A part of engines in C++ for Python, twentieth set: calls of other workers, whose answers are objects of Python.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

extern "C" {
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
}

namespace {

// The lock of the interpreter, for as long as this lives.
class ScopedAcquire {
public:
    ScopedAcquire() : state_(PyGILState_Ensure()) {}
    ~ScopedAcquire() { PyGILState_Release(state_); }

private:
    int state_;
};

class Future {
public:
    // The pointers of the answer are taken out of it, for which the interpreter is needed.
    void mark_completed(long (*extract)(long), long answer)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        completing_ = true;
        ScopedAcquire acquire;
        value_ = extract(answer);
        completed_ = true;
        finished_.notify_all();
    }

    bool completed()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        return completed_;
    }

    long wait()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        finished_.wait(guard, [this] { return completed_; });
        return value_;
    }

    bool answered() const { return completing_; }

private:
    std::mutex mutex_;
    std::condition_variable finished_;
    std::atomic<bool> completing_{false};
    bool completed_ = false;
    long value_ = 0;
};

// The answers come in by a thread of its own.
class Agent {
public:
    Agent()
    {
        std::thread([this] { listen(); }).detach();
    }

    std::shared_ptr<Future> send(long (*extract)(long), long number)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        sent_.push_back({std::make_shared<Future>(), extract, number});
        filled_.notify_one();
        return sent_.back().future;
    }

private:
    struct Request {
        std::shared_ptr<Future> future;
        long (*extract)(long);
        long number;
    };

    void listen()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            filled_.wait(guard, [this] { return !sent_.empty(); });
            Request request = sent_.front();
            sent_.pop_front();
            guard.unlock();
            std::this_thread::sleep_for(std::chrono::milliseconds(20)); // on the way
            request.future->mark_completed(request.extract, request.number);
        }
    }

    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<Request> sent_;
};

Agent &agent()
{
    static auto *made = new Agent;
    return *made;
}

} // namespace

extern "C" long rpc_sync(long (*extract)(long), long number)
{
    return agent().send(extract, number)->wait();
}

// Whether it is there already, once something else is done.
extern "C" int rpc_poll(long (*extract)(long), long number)
{
    auto future = agent().send(extract, number);
    while (!future->answered())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return future->completed();
}
