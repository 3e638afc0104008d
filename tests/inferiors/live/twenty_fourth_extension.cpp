// Parts of engines in C++ for Python, twenty-fourth set: a graph of scenes, and arrays that a pool of threads reads.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

extern "C" {
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
}

namespace {

// Threads that live as long as the process, and what is to be done.
class Arena {
public:
    explicit Arena(int count)
    {
        for (int number = 0; number < count; ++number)
            std::thread([this] { work(); }).detach();
    }

    void enqueue(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push_back(std::move(task));
        filled_.notify_one();
    }

private:
    void work()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            filled_.wait(guard, [this] { return !tasks_.empty(); });
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            guard.unlock();
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::function<void()>> tasks_;
};

// What the caller waits for.
class TaskGroup {
public:
    explicit TaskGroup(Arena &arena) : arena_(arena) {}

    void run(std::function<void()> task)
    {
        ++left_;
        arena_.enqueue([this, task = std::move(task)] {
            task();
            std::lock_guard<std::mutex> guard(mutex_);
            if (--left_ == 0)
                ended_.notify_one();
        });
    }

    void wait()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        ended_.wait(guard, [this] { return left_ == 0; });
    }

private:
    Arena &arena_;
    std::mutex mutex_;
    std::condition_variable ended_;
    std::atomic<int> left_{0};
};

// A node of the graph whose value is an expression in Python.
int compute_expression(int (*expression)(int), int level)
{
    int state = PyGILState_Ensure();
    int value = expression(level);
    PyGILState_Release(state);
    return value;
}

// An array in chunks, each of which is decoded by the pool.
class ArrayDriver {
public:
    long read(int chunk)
    {
        auto promise = std::make_shared<std::promise<long>>();
        auto result = promise->get_future();
        pool().enqueue([chunk, promise] {
            std::vector<long> values(4096);
            std::iota(values.begin(), values.end(), chunk);
            promise->set_value(std::accumulate(values.begin(), values.end(), 0L));
        });
        return result.get();
    }

private:
    static Arena &pool()
    {
        static auto *arena = new Arena(2);
        return *arena;
    }
};

} // namespace

// Each level of a path is looked at in parallel; the names of one level come from Python.
extern "C" int scene_exists(int (*expression)(int), int levels)
{
    static auto *arena = new Arena(2);
    TaskGroup group(*arena);
    std::vector<int> found(levels);
    for (int level = 0; level < levels; ++level)
        group.run([&found, level, expression] {
            found[level] = level % 3 == 1 ? compute_expression(expression, level) : 1;
        });
    group.wait();
    return std::accumulate(found.begin(), found.end(), 0) == levels;
}

extern "C" long read_chunk(int chunk)
{
    static auto *driver = new ArrayDriver;
    return driver->read(chunk);
}
