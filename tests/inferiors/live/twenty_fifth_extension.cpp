// A part of an engine in C++ for Python, twenty-fifth set: threads of event loops that call Python.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

class EventLoopThread {
public:
    EventLoopThread() : thread_([this] { run(); }) {}

    ~EventLoopThread()
    {
        execute(nullptr);
        thread_.join();
    }

    void execute(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push_back(std::move(task));
        filled_.notify_one();
    }

private:
    void run()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            filled_.wait(guard, [this] { return !tasks_.empty(); });
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            guard.unlock();
            if (!task)
                return;
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::function<void()>> tasks_;
    std::thread thread_; // the last one, as it uses the others
};

// The loops of all sockets.
class IOContext {
public:
    explicit IOContext(int count)
    {
        for (int number = 0; number < count; ++number)
            loops_.push_back(std::make_unique<EventLoopThread>());
    }

    ~IOContext() { ending_ = true; }

    // the peer of the last one answers late
    void connect(int number, void (*connected)(int))
    {
        loops_[number % loops_.size()]->execute([this, number, connected] {
            while (number > 0 && !ending_)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            connected(number);
        });
    }

private:
    std::atomic<bool> ending_{false};
    std::vector<std::unique_ptr<EventLoopThread>> loops_; // ended first
};

} // namespace

extern "C" void *io_context_new(int count) { return new IOContext(count); }

extern "C" void io_context_connect(void *context, int number, void (*connected)(int))
{
    static_cast<IOContext *>(context)->connect(number, connected);
}

extern "C" void io_context_free(void *context) { delete static_cast<IOContext *>(context); }
