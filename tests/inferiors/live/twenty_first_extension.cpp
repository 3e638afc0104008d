// A part of engines in C++ for Python, twenty-first set: a device of one stream, with events and functions of the host.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace {

// What is put into it is done in turn, by a thread of its own.
class Stream {
public:
    Stream()
    {
        std::thread([this] { run(); }).detach();
    }

    void launch(std::function<void()> work)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        work_.push_back(std::move(work));
        ++left_;
        changed_.notify_all();
    }

    void synchronize()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return left_ == 0; });
    }

private:
    void run()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            changed_.wait(guard, [this] { return !work_.empty(); });
            auto work = std::move(work_.front());
            work_.pop_front();
            guard.unlock();
            work();
            guard.lock();
            --left_;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> work_;
    int left_ = 0;
};

struct Device {
    Stream stream;
    std::mutex mutex;
    std::map<int, bool> events;
    int next = 1;
};

Device &device()
{
    static auto *made = new Device;
    return *made;
}

} // namespace

extern "C" {

void stream_copy(int microseconds)
{
    device().stream.launch([=] { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); });
}

void stream_host_function(void (*function)(long), int argument)
{
    device().stream.launch([=] { function(argument); });
}

int event_create()
{
    std::lock_guard<std::mutex> guard(device().mutex);
    device().events[device().next] = false;
    return device().next++;
}

void event_record(int event)
{
    device().stream.launch([=] {
        std::lock_guard<std::mutex> guard(device().mutex);
        device().events[event] = true;
    });
}

// It may be in use by any of the streams, so that all of them come first.
void event_destroy(int event)
{
    device().stream.synchronize();
    std::lock_guard<std::mutex> guard(device().mutex);
    device().events.erase(event);
}
}
