// Parts of engines in C++ for Python, fourteenth set: an allocator, thread states, a worker.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <semaphore.h>
#include <thread>
#include <vector>

namespace {

using Callback = void (*)(int);
using std::chrono::milliseconds;

// Blocks of one size. When there is none left, new ones are taken from the system, with the lock.
class CentralCache {
public:
    void *allocate()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (free_.empty())
            populate();
        void *block = free_.back();
        free_.pop_back();
        return block;
    }

    void release(void *block)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        free_.push_back(block);
        if (free_.size() > 8)
            scavenge();
    }

private:
    void populate()
    {
        refills = refills + 1;
        for (int number = 0; number < 8; ++number)
            free_.push_back(memset(malloc(4096), 0, 4096));
        std::this_thread::sleep_for(milliseconds(300)); // the system is short of memory
    }

    void scavenge()
    {
        free(free_.back());
        free_.pop_back();
    }

    std::mutex mutex_;
    std::vector<void *> free_;

public:
    std::atomic<int> refills{0};
};

// The states of threads, in a list with a lock. When the interpreter ends each of them is cleared.
class ThreadStates {
public:
    ThreadStates()
    {
        sem_init(&head_lock_, 0, 1);
    }

    int add()
    {
        sem_wait(&head_lock_);
        int state = next_++;
        states_.push_back(state);
        sem_post(&head_lock_);
        return state;
    }

    void clear_all(Callback clear)
    {
        sem_wait(&head_lock_);
        for (int state : states_)
            clear(state);
        states_.clear();
        sem_post(&head_lock_);
    }

private:
    sem_t head_lock_;
    std::vector<int> states_;
    int next_ = 0;
};

// Calls Python from a thread of its own, until it is destroyed.
class Worker {
public:
    explicit Worker(Callback work) : thread_([this, work] { loop(work); }) {}

    ~Worker()
    {
        stops_ = true;
        thread_.join();
    }

private:
    void loop(Callback work)
    {
        for (int number = 0; !stops_; ++number) {
            std::this_thread::sleep_for(milliseconds(10));
            work(number);
        }
    }

    std::atomic<bool> stops_{false};
    std::thread thread_;
};

CentralCache cache;
ThreadStates thread_states;

} // namespace

extern "C" void *cache_allocate()
{
    return cache.allocate();
}

extern "C" void cache_release(void *block)
{
    cache.release(block);
}

extern "C" int cache_refills()
{
    return cache.refills;
}

extern "C" int thread_state_new()
{
    return thread_states.add();
}

extern "C" void thread_states_clear(Callback clear)
{
    thread_states.clear_all(clear);
}

extern "C" void *worker_new(Callback work)
{
    return new Worker(work);
}

extern "C" void worker_delete(void *worker)
{
    delete static_cast<Worker *>(worker);
}
