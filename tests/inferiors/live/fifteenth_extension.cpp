// Parts of engines in C++ for Python, fifteenth set: a device with a stream, and a communicator.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace {

// Kernels are done one after the other by a thread, as by a device; when that is lost, none is done any more.
class Device {
public:
    Device() { std::thread([this] { execute(); }).detach(); }

    void launch()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        ++launched_;
        changed_.notify_all();
    }

    void synchronize()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return done_ == launched_; });
    }

    void lose()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        lost_ = true;
        changed_.notify_all();
    }

private:
    void execute()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        for (;;) {
            changed_.wait(guard, [this] { return lost_ || done_ < launched_; });
            if (lost_)
                return;
            ++done_;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    unsigned launched_ = 0, done_ = 0;
    bool lost_ = false;
};

// Messages of threads of one process for one another.
class Communicator {
public:
    void send(int message)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        messages_.push_back(message);
        arrived_.notify_one();
    }

    int receive()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        arrived_.wait(guard, [this] { return !messages_.empty(); });
        int message = messages_.front();
        messages_.pop_front();
        return message;
    }

private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<int> messages_;
};

Device &device()
{
    static Device *one = new Device;
    return *one;
}

Communicator communicator;

} // namespace

extern "C" void device_lose()
{
    device().lose();
}

extern "C" void kernel_launch()
{
    device().launch();
}

extern "C" void stream_synchronize()
{
    device().synchronize();
}

extern "C" void communicator_send(int message)
{
    communicator.send(message);
}

extern "C" int communicator_receive()
{
    return communicator.receive();
}
