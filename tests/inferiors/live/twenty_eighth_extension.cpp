// A part of engines in C++ for Python, twenty-eighth set: a loop over numbers whose parts are done by several threads.
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

extern "C" {
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
}

namespace {

using Body = double (*)(int);

// The numbers of a loop, each of which is done by one of the threads.
class ParallelLoop {
public:
    ParallelLoop(int count, Body body) : body_(body), left_(count) {}

    void run(int number)
    {
        int state = PyGILState_Ensure();
        double value = body_(number);
        PyGILState_Release(state);
        std::lock_guard<std::mutex> guard(mutex_);
        sum_ += value;
        if (--left_ == 0)
            ended_.notify_all();
    }

    double result()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        ended_.wait(guard, [this] { return left_ == 0; });
        return sum_;
    }

private:
    Body body_;
    int left_;
    double sum_ = 0;
    std::mutex mutex_;
    std::condition_variable ended_;
};

} // namespace

// Who calls this does the first number, and waits for the others, which have a thread each.
extern "C" double parallel_sum(int count, Body body)
{
    ParallelLoop loop(count, body);
    std::vector<std::thread> threads;
    loop.run(0);
    for (int number = 1; number < count; ++number)
        threads.emplace_back([&loop, number] { loop.run(number); });
    double sum = loop.result();
    for (auto &thread : threads)
        thread.join();
    return sum;
}
