// A part of engines in C++ for Python, fifteenth set: a communicator.
#include <condition_variable>
#include <deque>
#include <mutex>

namespace {

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

Communicator communicator;

} // namespace

extern "C" void communicator_send(int message)
{
    communicator.send(message);
}

extern "C" int communicator_receive()
{
    return communicator.receive();
}
