// C++ programs that hang, and healthy ones, twenty-ninth set: `twenty_ninth_native NAME FOLDER`.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static std::string folder;

static void at(const char *role, pid_t pid = getpid())
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << pid;
    rename(draft.c_str(), name.c_str());
}

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

void until(const std::atomic<bool> &flag)
{
    while (!flag)
        std::this_thread::yield();
}

// Messages from one thread to another one. Who writes waits for room.
class Ring {
public:
    void write(int message)
    {
        while (end_ - begin_ == SIZE)
            std::this_thread::sleep_for(microseconds(200));
        messages_[end_ % SIZE] = message;
        ++end_;
    }

    bool read(int &message)
    {
        if (begin_ == end_)
            return false;
        message = messages_[begin_ % SIZE];
        ++begin_;
        return true;
    }

private:
    static constexpr size_t SIZE = 256;
    int messages_[SIZE];
    std::atomic<size_t> begin_{0}, end_{0};
};

// A node: the host has the connections, and the enclave has what is computed.
class Node {
public:
    Node()
    {
        std::thread([this] { enclave(); }).detach();
    }

    // what has come over the connections by now is given to the enclave, and then its answers are taken
    void host(int arrived)
    {
        for (int number = 0; number < arrived; ++number)
            inbound_.write(number);
        int message = 0;
        for (int answers = 0; answers < 2 * arrived;)
            answers += outbound_.read(message);
    }

private:
    // each request has an answer, and a line of the log
    void enclave()
    {
        int message = 0;
        while (true) {
            if (!inbound_.read(message)) {
                std::this_thread::sleep_for(microseconds(200));
                continue;
            }
            outbound_.write(message);
            outbound_.write(-message);
        }
    }

    Ring inbound_, outbound_;
};

// As microsoft/CCF#628: a node has two ring buffers, and the one thread of the host writes to one of them and reads
// from the other. Requests come faster than they are logged, until both are full.
int fills_both_rings()
{
    static auto *node = new Node;
    for (int burst = 0; burst < 3; ++burst)
        node->host(100);
    at("main");
    node->host(1000);
    return 0;
}

// A configuration that many read and few write. Writers go first, so that there is an end to their waiting.
class Configuration {
public:
    Configuration()
    {
        pthread_rwlockattr_t attributes;
        pthread_rwlockattr_init(&attributes);
        pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
        pthread_rwlock_init(&lock_, &attributes);
    }

    std::string get(const std::string &name)
    {
        pthread_rwlock_rdlock(&lock_);
        std::string value = values_[name];
        pthread_rwlock_unlock(&lock_);
        return value;
    }

    // the lock is held for all of a section, and `visit` may get other values
    void section(const std::string &name, const std::function<void(const std::string &)> &visit)
    {
        pthread_rwlock_rdlock(&lock_);
        visit(values_[name]);
        pthread_rwlock_unlock(&lock_);
    }

    void set(const std::string &name, const std::string &value)
    {
        pthread_rwlock_wrlock(&lock_);
        values_[name] = value;
        pthread_rwlock_unlock(&lock_);
    }

    bool is_wanted_for_writing()
    {
        if (pthread_rwlock_tryrdlock(&lock_) != 0)
            return true;
        pthread_rwlock_unlock(&lock_);
        return false;
    }

private:
    pthread_rwlock_t lock_;
    std::map<std::string, std::string> values_;
};

// As circonus-labs/libmtev#670: a thread reads a section of the configuration, and a value of another one within it. In
// between a writer has come, whom all readers let go first, even those that are inside.
int reads_in_a_read()
{
    static auto *configuration = new Configuration;
    configuration->set("listeners", "logs");
    configuration->set("logs", "stderr");
    configuration->section("listeners", [](const std::string &name) { configuration->get(name); });
    std::atomic<bool> inside{false};
    std::thread writer([&inside] {
        until(inside);
        configuration->set("logs", "file");
    });
    configuration->section("listeners", [&inside](const std::string &name) {
        inside = true;
        while (!configuration->is_wanted_for_writing())
            std::this_thread::yield();
        at("main");
        printf("%s\n", configuration->get(name).c_str());
    });
    writer.join();
    return 0;
}

// Tables of an image decoder, made when the first image is decoded.
struct Tables {
    Tables() : cosines(64, 0.5) {}
    ~Tables() { cosines.clear(); }
    std::vector<double> cosines;
};

double decode(int pixel)
{
    static Tables tables;
    return pixel * tables.cosines[pixel % 64];
}

void release() {}

// The thread that pins what the workers have loaded. Each kind of tensor is prepared when the first of it comes, and
// has something to do at the end.
class PinMemory {
public:
    PinMemory() : thread_([this] { work(); }) {}

    void come()
    {
        long before = prepared_;
        {
            std::lock_guard<std::mutex> guard(mutex_);
            coming_ = true;
        }
        filled_.notify_one();
        while (prepared_ < before + 1000)
            std::this_thread::yield();
    }

    void pause() { coming_ = false; }

private:
    void work()
    {
        while (true) {
            {
                std::unique_lock<std::mutex> guard(mutex_);
                filled_.wait(guard, [this] { return coming_.load(); });
            }
            while (coming_) {
                std::atexit(release);
                ++prepared_;
            }
        }
    }

    std::mutex mutex_;
    std::condition_variable filled_;
    std::atomic<bool> coming_{false};
    std::atomic<long> prepared_{0};
    std::thread thread_;
};

bool ends_soon(pid_t child)
{
    for (int step = 0; step < 2500; ++step) {
        if (waitpid(child, nullptr, WNOHANG) == child)
            return true;
        std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
}

// As ultralytics/ultralytics#26085: workers are forked while a thread registers what is to be done at the end. The C
// library has a lock for that, which is not made anew in a child; the worker wants it as it decodes its first image.
int decodes_in_a_worker()
{
    static auto *pins = new PinMemory;
    pid_t child = 0;
    do {
        pins->come();
        child = fork();
        if (child == 0) {
            printf("%g\n", decode(7));
            _exit(0);
        }
        pins->pause();
    } while (ends_soon(child));
    at("child", child);
    at("main");
    waitpid(child, nullptr, 0);
    return 0;
}

// Who waits for a task does others in the meantime.
class ThreadPool {
public:
    struct Task {
        std::function<void()> work;
        bool done = false;
    };
    using Handle = std::shared_ptr<Task>;

    explicit ThreadPool(int count)
    {
        for (int number = 0; number < count; ++number)
            std::thread([this] { serve(); }).detach();
    }

    Handle execute(std::function<void()> work)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        pending_.push_back(std::make_shared<Task>(Task{std::move(work)}));
        changed_.notify_all();
        return pending_.back();
    }

    void wait(const Handle &task)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (!task->done) {
            changed_.wait(guard, [&] { return task->done || !pending_.empty(); });
            if (!task->done)
                run_last(guard);
        }
    }

    // for threads that are not of the pool
    void wait_only(const Handle &task)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [&] { return task->done; });
    }

private:
    void serve()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (true) {
            changed_.wait(guard, [this] { return !pending_.empty(); });
            run_last(guard);
        }
    }

    void run_last(std::unique_lock<std::mutex> &guard)
    {
        Handle task = pending_.back();
        pending_.pop_back();
        guard.unlock();
        task->work();
        guard.lock();
        task->done = true;
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Handle> pending_;
};

// As TileDB-Inc/TileDB#1994: a query has a lock and waits for a part of its work. As it waits it does another task of
// the pool, which is the next query and wants the same lock.
int helps_while_it_waits()
{
    static auto *pool = new ThreadPool(2);
    static std::mutex array;
    static std::atomic<bool> reading{false}, submitted{false}, helping{false};
    auto first = pool->execute([] {
        std::lock_guard<std::mutex> guard(array);
        auto part = pool->execute([] {
            reading = true;
            until(helping);
        });
        until(reading);
        until(submitted);
        pool->wait(part);
    });
    until(reading);
    auto second = pool->execute([] {
        helping = true;
        at("main");
        std::lock_guard<std::mutex> guard(array);
    });
    submitted = true;
    pool->wait_only(first);
    pool->wait_only(second);
    return 0;
}

struct Job {
    int id, tries;
    bool ended;
};

// As cooperative-computing-lab/cctools#1264, healthy: the scheduler of a cluster goes round without a pause. It looks
// for jobs, for nodes that have something to say and for clients; there are none of them.
int polls_for_jobs()
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 || listen(listener, 8) != 0)
        return 1;
    std::vector<Job> jobs(400, Job{0, 0, true});
    std::vector<pollfd> sockets{{listener, POLLIN, 0}};
    for (unsigned long round = 0;; ++round) {
        for (auto &job : jobs)
            if (!job.ended && ++job.tries > 3)
                job.ended = true;
        std::sort(jobs.begin(), jobs.end(), [](const Job &one, const Job &other) { return one.id < other.id; });
        if (poll(sockets.data(), sockets.size(), 0) > 0) {
            sockets.push_back({accept(listener, nullptr, nullptr), POLLIN, 0});
            jobs.push_back(Job{static_cast<int>(round), 0, false});
        }
        if (round == 2000)
            at("main");
    }
}

// Blocks of a function, and which of them follow each.
struct Function {
    std::vector<std::vector<int>> next;
    std::vector<std::vector<bool>> live;
};

Function lower(unsigned seed)
{
    const int blocks = 400;
    Function function{std::vector<std::vector<int>>(blocks), {}};
    for (int block = 0; block < blocks; ++block)
        for (int edge = 0; edge < 3; ++edge)
            function.next[block].push_back((seed = seed * 1664525 + 1013904223) % blocks);
    function.live.assign(blocks, std::vector<bool>(300));
    for (int value = 0; value < 300; ++value)
        function.live[(seed = seed * 1664525 + 1013904223) % blocks][value] = true;
    return function;
}

void spread_liveness(Function &function)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t block = 0; block < function.next.size(); ++block)
            for (int next : function.next[block])
                for (size_t value = 0; value < function.live[block].size(); ++value)
                    if (function.live[next][value] && !function.live[block][value])
                        changed = function.live[block][value] = true;
    }
}

void compile_crates()
{
    size_t live = 0;
    for (unsigned crate = 0;; ++crate) {
        Function function = lower(crate);
        spread_liveness(function);
        live += std::count(function.live[0].begin(), function.live[0].end(), true);
        std::ofstream(folder + "/object") << live << "\n";
        if (crate == 2)
            at("compiler");
    }
}

// As encero-systems/incan#276, healthy: a small program is run for the first time. All that it needs is compiled before
// that, with all optimizations, and nothing is said about it.
int builds_all_crates()
{
    pid_t child = fork();
    if (child == 0)
        compile_crates();
    while (access((folder + "/compiler").c_str(), F_OK) != 0)
        std::this_thread::sleep_for(milliseconds(20));
    at("main");
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"fills-both-rings", fills_both_rings},
        {"reads-in-a-read", reads_in_a_read},
        {"decodes-in-a-worker", decodes_in_a_worker},
        {"helps-while-it-waits", helps_while_it_waits},
        {"polls-for-jobs", polls_for_jobs},
        {"builds-all-crates", builds_all_crates},
    };
    return programs.at(argv[1])();
}
