// A part of engines in C++ for Python, seventeenth set: a pipeline whose steps call Python.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

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

// What goes from one step to the next.
class Edge {
public:
    void push(int value)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        values_.push_back(value);
        filled_.notify_one();
    }

    int pop()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        filled_.wait(guard, [this] { return !values_.empty(); });
        int value = values_.front();
        values_.pop_front();
        return value;
    }

private:
    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<int> values_;
};

} // namespace

// Each step has a thread: one makes numbers, one gives them to Python, and one takes what comes back.
extern "C" int run_pipeline(int (*step)(int), int count)
{
    Edge made, changed;
    int total = 0;
    std::vector<std::thread> steps;
    steps.emplace_back([&] {
        for (int number = 0; number < count; ++number)
            made.push(number);
    });
    steps.emplace_back([&] {
        for (int number = 0; number < count; ++number) {
            ScopedAcquire acquire;
            changed.push(step(made.pop()));
        }
    });
    steps.emplace_back([&] {
        for (int number = 0; number < count; ++number)
            total += changed.pop();
    });
    for (auto &thread : steps)
        thread.join();
    return total;
}
