// A part in C++ for Python, thirty-third set: messages that a thread here brings on.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace {

// Brings on what was posted: each message is handed to a function of whoever made this.
class ProgressEngine {
public:
    explicit ProgressEngine(int (*on_message)(int)) : on_message_(on_message)
    {
        std::thread([this] { progress(); }).detach();
    }

    void post(int message)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        posted_.push_back(message);
        changed_.notify_all();
    }

    int wait_all()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return posted_.empty() && !busy_; });
        return total_;
    }

private:
    void progress()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (true) {
            changed_.wait(guard, [this] { return !posted_.empty(); });
            int message = posted_.front();
            posted_.pop_front();
            busy_ = true;
            guard.unlock();
            int size = on_message_(message);
            guard.lock();
            total_ += size;
            busy_ = false;
            changed_.notify_all();
        }
    }

    int (*on_message_)(int);
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<int> posted_;
    bool busy_ = false;
    int total_ = 0;
};

ProgressEngine *engine = nullptr;

} // namespace

extern "C" void open_engine(int (*on_message)(int))
{
    engine = new ProgressEngine(on_message);
}

extern "C" void post_message(int message)
{
    engine->post(message);
}

extern "C" int wait_for_messages(void)
{
    return engine->wait_all();
}
