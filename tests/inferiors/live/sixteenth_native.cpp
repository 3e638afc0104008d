// C++ programs that hang, sixteenth set: `sixteenth_native NAME FOLDER`.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

static std::string folder;

static void at(const char *role, pid_t pid = getpid())
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << pid;
    rename(draft.c_str(), name.c_str());
}

namespace {

using std::chrono::milliseconds;

enum class State { idle, busy, dead };

// Each worker says what it does. Who ends the pool waits until all have said that they are dead.
class Workers {
public:
    explicit Workers(unsigned count) : states_(count)
    {
        for (unsigned number = 0; number < count; ++number)
            std::thread([this, number] {
                try {
                    work(number);
                } catch (const std::exception &error) {
                    fprintf(stderr, "worker %u: %s\n", number, error.what());
                }
            }).detach();
    }

    void post(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push_back(std::move(task));
        filled_.notify_one();
    }

    void join()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        stopped_ = true;
        filled_.notify_all();
        for (State &state : states_)
            while (state != State::dead) {
                guard.unlock();
                std::this_thread::sleep_for(milliseconds(500));
                guard.lock();
            }
    }

private:
    void work(unsigned number)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (true) {
            states_[number] = State::idle;
            filled_.wait(guard, [this] { return stopped_ || !tasks_.empty(); });
            if (tasks_.empty())
                break;
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            states_[number] = State::busy;
            guard.unlock();
            task();
            guard.lock();
        }
        states_[number] = State::dead;
    }

    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::function<void()>> tasks_;
    std::vector<State> states_;
    bool stopped_ = false;
};

// As Icinga/icinga2#870: a worker of the pool ends by an error and has not said so. Who waits for the workers looks
// again and again whether it is dead.
int worker_ended_unseen()
{
    Workers workers(3);
    for (int number = 0; number < 8; ++number)
        workers.post([number] {
            std::this_thread::sleep_for(milliseconds(10));
            if (number == 5)
                throw std::runtime_error("a bad request");
        });
    std::this_thread::sleep_for(milliseconds(200));
    at("main");
    workers.join();
    return 0;
}

// Its tasks are taken by workers, which wait for tasks or for the end.
class ThreadPool {
public:
    ThreadPool()
    {
        for (int number = 0; number < 2; ++number)
            threads_.emplace_back([this] { work(); });
    }

    ~ThreadPool()
    {
        running_ = false;
        available_.notify_all();
        for (auto &thread : threads_)
            thread.join();
    }

    void push(std::function<void()> task)
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            tasks_.push_back(std::move(task));
        }
        available_.notify_one();
    }

    std::atomic<int> done{0};

private:
    // It is slow now and then, as all is on a machine with much to do.
    bool anything()
    {
        bool over = !running_;
        if (done == 4)
            std::this_thread::sleep_for(milliseconds(1000));
        return over || !tasks_.empty();
    }

    void work()
    {
        while (running_) {
            std::unique_lock<std::mutex> guard(mutex_);
            available_.wait(guard, [this] { return anything(); });
            if (tasks_.empty())
                continue;
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            guard.unlock();
            task();
            ++done;
        }
    }

    std::mutex mutex_;
    std::condition_variable available_;
    std::deque<std::function<void()>> tasks_;
    std::atomic<bool> running_{true};
    std::vector<std::thread> threads_;
};

// As bshoshany/thread-pool#108: the pool is told to end without its lock, between a worker's look at whether it is to
// end and its wait. The worker is not woken, and the destructor waits for it.
int pool_told_too_early()
{
    auto pool = std::make_unique<ThreadPool>();
    for (int number = 0; number < 4; ++number)
        pool->push([] { std::this_thread::sleep_for(milliseconds(20)); });
    while (pool->done < 4)
        std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(200));
    at("main");
    pool.reset();
    return 0;
}

std::once_flag dumped;

// It walks along the stack, of which a part cannot be read.
void dump()
{
    fprintf(stderr, "a failure in %d\n", getpid());
    volatile const long *frame = reinterpret_cast<const long *>(16);
    fprintf(stderr, "at %ld\n", *frame);
}

void on_failure(int number)
{
    std::call_once(dumped, dump);
    signal(number, SIG_DFL);
    raise(number);
}

// As ng-log/ng-log#40: the handler of failures writes a dump, once. It fails in it, so that the handler is there again,
// on the same thread, and waits until the dump is done.
int failure_inside_its_handler()
{
    signal(SIGABRT, on_failure);
    signal(SIGSEGV, on_failure);
    at("main");
    abort();
}

// Instances of models with priorities, some of which need the one resource that there is.
class RateLimiter {
public:
    void acquire(int priority, int needs)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        auto place = waiting_.emplace(priority, next_++).first;
        // only the first one in the order is looked at
        changed_.wait(guard, [&] { return place == waiting_.begin() && resources_ >= needs; });
        waiting_.erase(place);
        resources_ -= needs;
        changed_.notify_all();
    }

    void release(int needs)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        resources_ += needs;
        changed_.notify_all();
    }

    size_t waiting()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return waiting_.size();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::set<std::pair<int, int>> waiting_;
    int next_ = 0, resources_ = 1;
};

void run_model(RateLimiter &limiter, int priority, int needs, const std::function<void()> &execute)
{
    limiter.acquire(priority, needs);
    execute();
    limiter.release(needs);
}

// As triton-inference-server/server#8358: a model has the resource and asks another model, which needs none. Before
// that one in the order is a third, which waits for the resource; nobody looks any further.
int limiter_looks_at_first_only()
{
    RateLimiter limiter;
    std::atomic<bool> runs{false};
    std::thread first([&] {
        run_model(limiter, 2, 1, [&] {
            runs = true;
            while (limiter.waiting() == 0)
                std::this_thread::sleep_for(milliseconds(5));
            run_model(limiter, 3, 0, [] {});
        });
    });
    while (!runs)
        std::this_thread::sleep_for(milliseconds(5));
    std::thread third([&] { run_model(limiter, 1, 1, [] {}); });
    while (limiter.waiting() < 2)
        std::this_thread::sleep_for(milliseconds(5));
    at("main");
    first.join();
    third.join();
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"worker-ended-unseen", worker_ended_unseen},
        {"pool-told-too-early", pool_told_too_early},
        {"failure-inside-its-handler", failure_inside_its_handler},
        {"limiter-looks-at-first-only", limiter_looks_at_first_only},
    };
    return programs.at(argv[1])();
}
