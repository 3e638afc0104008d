// Parts of engines in C++ for Python, twenty-sixth set: a device, the media of a call, and an agent with a pool.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
void Py_IncRef(void *object);
void Py_DecRef(void *object);
}

namespace {

using std::chrono::milliseconds;

// What is launched on it is done in order, beside who launches it.
class Device {
public:
    Device()
    {
        std::thread([this] { work(); }).detach();
    }

    void launch(std::function<void()> kernel)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        kernels_.push_back(std::move(kernel));
        ++left_;
        launched_.notify_one();
    }

    void synchronize()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        done_.wait(guard, [this] { return left_ == 0; });
    }

private:
    void work()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            launched_.wait(guard, [this] { return !kernels_.empty(); });
            auto kernel = std::move(kernels_.front());
            kernels_.pop_front();
            guard.unlock();
            kernel();
            guard.lock();
            --left_;
            done_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable launched_, done_;
    std::deque<std::function<void()>> kernels_;
    int left_ = 0;
};

// The media of a call: a thread has the lock of all of it for as long as a frame is delivered.
class Call {
public:
    Call(void (*on_frame)(int), void (*on_log)(int)) : on_frame_(on_frame), on_log_(on_log)
    {
        std::thread([this] { deliver(); }).detach();
        std::thread([this] { log(); }).detach();
    }

    // from the next frame on
    void mute(bool muted)
    {
        int seen = begun_;
        while (begun_ == seen)
            std::this_thread::sleep_for(milliseconds(1));
        std::lock_guard<std::mutex> guard(mutex_);
        muted_ = muted;
    }

private:
    void deliver()
    {
        while (true) {
            {
                std::lock_guard<std::mutex> guard(mutex_);
                ++begun_;
                on_frame_(muted_ ? 0 : begun_.load());
            }
            std::this_thread::sleep_for(milliseconds(10));
        }
    }

    void log()
    {
        for (int line = 0;; ++line) {
            on_log_(line);
            std::this_thread::sleep_for(milliseconds(50));
        }
    }

    std::mutex mutex_;
    std::atomic<int> begun_{0};
    bool muted_ = false;
    void (*on_frame_)(int), (*on_log_)(int);
};

// A message that keeps an object of Python until it has been sent.
class Message {
public:
    explicit Message(void *object = nullptr) : object_(object)
    {
        change(Py_IncRef);
    }

    ~Message() { change(Py_DecRef); }

    Message(const Message &) = delete;

    void send() { sent = true; }

    bool sent = false;

private:
    void change(void (*count)(void *))
    {
        if (!object_)
            return;
        int state = PyGILState_Ensure();
        count(object_);
        PyGILState_Release(state);
    }

    void *object_;
};

// Sends messages by a thread of a pool.
class Agent {
public:
    Agent()
    {
        std::thread([this] { main_loop(); }).detach();
    }

    void run(std::unique_ptr<Message> message)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        messages_.push_back(std::move(message));
        filled_.notify_one();
    }

private:
    void main_loop()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (true) {
            filled_.wait(guard, [this] { return !messages_.empty(); });
            auto message = std::move(messages_.front());
            messages_.pop_front();
            guard.unlock();
            message->send();
            guard.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::unique_ptr<Message>> messages_;
};

template <typename Step> void whole(int size, Step step)
{
    std::vector<char> block(1 << 16);
    while (size > 0) {
        auto moved = step(block.data(), std::min<size_t>(size, block.size()));
        if (moved <= 0)
            return;
        size -= moved;
    }
}

} // namespace

extern "C" void *device_new() { return new Device; }

extern "C" void device_send(void *device, int link, int size)
{
    static_cast<Device *>(device)->launch(
        [=] { whole(size, [=](char *data, size_t length) { return write(link, data, length); }); });
}

extern "C" void device_receive(void *device, int link, int size)
{
    static_cast<Device *>(device)->launch(
        [=] { whole(size, [=](char *data, size_t length) { return read(link, data, length); }); });
}

extern "C" void device_synchronize(void *device) { static_cast<Device *>(device)->synchronize(); }

// A module is loaded when nothing is left to be done; the last stage is told that it is wanted.
extern "C" int device_load(void *device, int last)
{
    int written = write(last, "k", 1);
    static_cast<Device *>(device)->synchronize();
    return written;
}

extern "C" void *call_new(void (*on_frame)(int), void (*on_log)(int)) { return new Call(on_frame, on_log); }

extern "C" void call_mute(void *call, int muted) { static_cast<Call *>(call)->mute(muted); }

extern "C" void *agent_new() { return new Agent; }

extern "C" void agent_send(void *agent, void *object)
{
    static_cast<Agent *>(agent)->run(std::make_unique<Message>(object));
}

// the owner is told that nobody here has the reference any more
extern "C" void agent_delete(void *agent) { static_cast<Agent *>(agent)->run(std::make_unique<Message>()); }
