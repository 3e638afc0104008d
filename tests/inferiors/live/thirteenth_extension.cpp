// Parts of engines in C++ for Python, thirteenth set: a core worker, an actor's tasks, a timer, a channel, pools.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <vector>

extern "C" int __cxa_atexit(void (*function)(void *), void *argument, void *library);
extern "C" void *__dso_handle;

namespace {

using Callback = void (*)(int);
using std::chrono::milliseconds;

// Tasks that were submitted. A thread tells Python from time to time how many there are.
class CoreWorker {
public:
    void submit()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        ++tasks_;
    }

    void beat(Callback report)
    {
        std::thread([this, report] {
            for (;;) {
                beat_once(report);
                std::this_thread::sleep_for(milliseconds(20));
            }
        }).detach();
    }

private:
    void beat_once(Callback report)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        report(tasks_);
    }

    std::mutex mutex_;
    int tasks_ = 0;
};

// Events that one thread handles in turn.
class EventLoop {
public:
    EventLoop()
    {
        std::thread([this] { run(); }).detach();
    }

    void post(int event)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        events_.push_back(event);
        changed_.notify_one();
    }

private:
    void run();

    int next()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return !events_.empty(); });
        int event = events_.front();
        events_.pop_front();
        return event;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<int> events_;
};

// Tasks of an actor that have no result yet. When it dies, each of them has one: that it has failed.
class ActorTasks {
public:
    void submit(int task, Callback failed)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        failed_ = failed;
        pending_.push_back(task);
    }

    void disconnect()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        for (int task : pending_)
            failed_(task);
        pending_.clear();
    }

private:
    std::mutex mutex_;
    std::vector<int> pending_;
    Callback failed_ = nullptr;
};

ActorTasks actor_tasks;

void EventLoop::run()
{
    for (;;)
        if (next() == 0)
            actor_tasks.disconnect();
}

// A thread that looks at timers. After a fork it is started anew in the child.
class Timers {
public:
    void start()
    {
        pthread_atfork(nullptr, nullptr, after_fork_in_child);
        start_thread();
    }

private:
    static void after_fork_in_child();

    void start_thread()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        std::thread([this] { run(); }).detach();
    }

    void run()
    {
        for (;;) {
            check();
            std::this_thread::sleep_for(milliseconds(1));
        }
    }

    void check()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        std::this_thread::sleep_for(milliseconds(400)); // the earliest timer's callback
    }

    std::mutex mutex_;
};

Timers timers;

void Timers::after_fork_in_child()
{
    timers.start_thread();
}

// A connection: a thread takes requests from it and completes them.
class Channel {
public:
    void connect()
    {
        std::thread([this] { poll(); }).detach();
    }

    int call(int request)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        requests_.push_back(request);
        sent_.notify_one();
        completed_.wait(guard, [this, request] { return last_ == request; });
        return last_;
    }

private:
    void poll()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        for (;;) {
            sent_.wait(guard, [this] { return !requests_.empty(); });
            last_ = requests_.front();
            requests_.pop_front();
            completed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable sent_, completed_;
    std::deque<int> requests_;
    int last_ = -1;
};

CoreWorker core_worker;
Channel channel;
std::atomic<bool> makes_pools{false};

void end_pool(void *) {}

} // namespace

extern "C" void core_worker_submit()
{
    core_worker.submit();
}

extern "C" void core_worker_beat(Callback report)
{
    core_worker.beat(report);
}

extern "C" void actor_submit(int task, Callback failed)
{
    actor_tasks.submit(task, failed);
}

extern "C" void actor_died()
{
    static auto *loop = new EventLoop;
    loop->post(0);
}

extern "C" void timers_start()
{
    timers.start();
}

extern "C" void channel_connect()
{
    channel.connect();
}

extern "C" int channel_call(int request)
{
    return channel.call(request);
}

// The pool's destructor is to be called at exit.
extern "C" void set_num_threads()
{
    __cxa_atexit(end_pool, nullptr, __dso_handle);
}

extern "C" void pools_begin()
{
    makes_pools = true;
}

extern "C" void pools_end()
{
    makes_pools = false;
}

// Many pools, one after the other.
extern "C" void pools_make()
{
    while (makes_pools)
        set_num_threads();
}
