// C++ programs that hang, and a healthy one, thirty-second set: `thirty_second_native NAME FOLDER`.
#include "program.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using live::at;
using live::folder;
using std::chrono::milliseconds;

double compute(int size)
{
    double total = 0;
    for (int number = 1; number < size; ++number)
        total += 1.0 / number;
    return total;
}

// Tasks for threads; `wait` comes back when all of them are done.
class TaskPool {
public:
    explicit TaskPool(size_t threads)
    {
        for (size_t number = 0; number < threads; ++number)
            workers_.emplace_back([this] { work(); });
    }

    ~TaskPool()
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            closed_ = true;
        }
        filled_.notify_all();
        for (std::thread &worker : workers_)
            worker.join();
    }

    void emplace(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push_back(std::move(task));
        ++left_;
        filled_.notify_one();
    }

    template <class Show> void wait(Show show)
    {
        std::unique_lock<std::mutex> guard(done_mutex_);
        while (size_t left = left_) {
            show(left);
            done_.wait(guard);
        }
    }

private:
    void work()
    {
        while (true) {
            std::function<void()> task;
            {
                std::unique_lock<std::mutex> guard(mutex_);
                filled_.wait(guard, [this] { return closed_ || !tasks_.empty(); });
                if (tasks_.empty())
                    return;
                task = std::move(tasks_.front());
                tasks_.pop_front();
            }
            task();
            if (--left_ == 0)
                done_.notify_all();
        }
    }

    std::mutex mutex_, done_mutex_;
    std::condition_variable filled_, done_;
    std::deque<std::function<void()>> tasks_;
    std::atomic<size_t> left_{0};
    bool closed_ = false;
    std::vector<std::thread> workers_;
};

// As stephenberry/glaze#1218: the tasks are extremely short, and what is left is shown before the pool is waited for.
int shows_what_is_left()
{
    TaskPool pool(3);
    std::atomic<int> sum{0};
    at("main");
    for (int round = 0; round < 100; ++round) {
        pool.emplace([&sum] {
            std::this_thread::sleep_for(milliseconds(40));
            ++sum;
        });
        pool.wait([&sum](size_t left) {
            std::ofstream(folder + "/progress") << left << " left, " << sum << " done\n";
            std::this_thread::sleep_for(milliseconds(160)); // as slow as a terminal over a line
        });
    }
    return 0;
}

// Memory of a shell, from regions that grow.
class Region {
public:
    void *allocate(size_t size)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (used_ + size > memory_.size())
            extend(size);
        void *memory = memory_.data() + used_;
        used_ += size;
        return memory;
    }

private:
    void extend(size_t size)
    {
        std::vector<char> larger(memory_.size() * 2 + size);
        for (int page = 0; page < 40; ++page) {
            memset(larger.data(), page, larger.size());
            std::this_thread::sleep_for(milliseconds(10));
        }
        memory_.swap(larger);
        used_ = 0;
    }

    std::mutex mutex_;
    std::vector<char> memory_ = std::vector<char>(1 << 12);
    size_t used_ = 0;
};

Region region;

struct Trap {
    int signal;
    Trap *next;
};

Trap *pending_traps = nullptr;

void fault(int signal)
{
    Trap *trap = static_cast<Trap *>(region.allocate(sizeof(Trap)));
    trap->signal = signal;
    trap->next = pending_traps;
    pending_traps = trap;
}

// As att/ast#490: a shell remembers each signal until the next command; what it runs sends one again and again.
int traps_a_signal()
{
    std::signal(SIGRTMIN, fault);
    pthread_t shell = pthread_self();
    std::atomic<bool> started{false};
    std::thread sender([shell, &started] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        started = true;
        for (int number = 0; number < 12; ++number) {
            std::this_thread::sleep_for(milliseconds(100));
            pthread_kill(shell, SIGRTMIN);
        }
    });
    sender.detach();
    while (!started)
        std::this_thread::yield();
    at("main");
    for (int command = 0; command < 1000; ++command)
        region.allocate(1 << 14);
    return 0;
}

// Threads that write the messages of a logger. When it is ended each of them says so.
class Appenders {
public:
    explicit Appenders(size_t size) : size_(size)
    {
        for (size_t number = 0; number < size; ++number)
            std::thread([this] { consume(); }).detach();
    }

    ~Appenders() { shutdown(); }

    void log(const std::string &message)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        messages_.push_back(message);
        consumers_.notify_one();
    }

    void shutdown()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        stop_ = true;
        stopped_ = 0;
        consumers_.notify_all();
        producers_.wait(guard, [this] { return stopped_ == size_; });
    }

private:
    void consume()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        std::ofstream file(folder + "/log.txt", std::ios::app);
        while (true) {
            consumers_.wait(guard, [this] { return stop_ || !messages_.empty(); });
            if (messages_.empty())
                break;
            file << messages_.front() << '\n';
            messages_.pop_front();
        }
        ++stopped_;
        producers_.notify_one();
    }

    size_t size_, stopped_ = 0;
    bool stop_ = false;
    std::mutex mutex_;
    std::condition_variable consumers_, producers_;
    std::deque<std::string> messages_;
};

struct DefaultContext {
    Appenders appenders{2};
};

DefaultContext &default_context()
{
    static DefaultContext context;
    return context;
}

// As log4cplus/log4cplus#102: the program ends the logger before it returns, and so does the library at its end.
int ends_its_pool_twice()
{
    for (int number = 0; number < 20; ++number)
        default_context().appenders.log("message " + std::to_string(number));
    default_context().appenders.shutdown();
    at("main");
    return 0;
}

// One of the lanes of a runtime: tasks for a worker, and those that come back after a time.
class Lane {
public:
    void run()
    {
        auto next = std::chrono::steady_clock::now();
        while (true) {
            std::function<void()> task;
            if (mutex_.try_lock()) {
                if (!tasks_.empty()) {
                    task = std::move(tasks_.front());
                    tasks_.pop_front();
                }
                mutex_.unlock();
            }
            if (task)
                task();
            if (std::chrono::steady_clock::now() >= next) {
                flushed_ += compute(1000);
                next += milliseconds(50);
            }
        }
    }

private:
    std::mutex mutex_;
    std::deque<std::function<void()>> tasks_;
    double flushed_ = 0;
};

// Healthy, as iowarp/clio-core#142: only periodic tasks are there, and the workers do not sleep for those.
int polls_its_lanes()
{
    std::vector<std::unique_ptr<Lane>> lanes;
    std::vector<std::thread> workers;
    for (int number = 0; number < 2; ++number) {
        lanes.push_back(std::make_unique<Lane>());
        workers.emplace_back([lane = lanes.back().get()] { lane->run(); });
    }
    at("main");
    for (std::thread &worker : workers)
        worker.join();
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    return live::run(argc, argv, {
        {"shows-what-is-left", shows_what_is_left},
        {"traps-a-signal", traps_a_signal},
        {"ends-its-pool-twice", ends_its_pool_twice},
        {"polls-its-lanes", polls_its_lanes},
    });
}
