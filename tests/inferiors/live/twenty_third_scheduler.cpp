// A library that computes in parallel, twenty-third set. Its threads live as long as it is loaded.
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace {

// What a thread has done; it is told when the thread ends.
struct Account {
    long done = 0;
    ~Account() { fprintf(stderr, "%ld parts\n", done); }
};

thread_local Account account;

class Scheduler {
public:
    Scheduler()
    {
        for (int number = 0; number < 2; ++number)
            workers_.emplace_back([this] { work(); });
    }

    ~Scheduler()
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            ended_ = true;
            changed_.notify_all();
        }
        for (auto &worker : workers_)
            worker.join();
    }

    void run(int parts, const std::function<void(int)> &body)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        body_ = &body;
        next_ = 0;
        parts_ = left_ = parts;
        changed_.notify_all();
        changed_.wait(guard, [this] { return left_ == 0; });
    }

private:
    void work()
    {
        long done = 0;
        std::unique_lock<std::mutex> guard(mutex_);
        while (true) {
            changed_.wait(guard, [this] { return ended_ || next_ < parts_; });
            if (ended_)
                break;
            int part = next_++;
            guard.unlock();
            (*body_)(part);
            ++done;
            guard.lock();
            if (--left_ == 0)
                changed_.notify_all();
        }
        guard.unlock();
        account.done = done;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void(int)> *body_ = nullptr;
    int parts_ = 0, next_ = 0, left_ = 0;
    bool ended_ = false;
    std::vector<std::thread> workers_;
};

Scheduler scheduler;

} // namespace

extern "C" double sequence_sum(const double *values, int count)
{
    constexpr int PARTS = 8;
    double sums[PARTS] = {};
    scheduler.run(PARTS, [&](int part) {
        for (int number = part; number < count; number += PARTS)
            sums[part] += values[number];
    });
    double total = 0;
    for (double sum : sums)
        total += sum;
    return total;
}
