// C++ programs that hang, fifteenth set: `fifteenth_native NAME FOLDER`.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <time.h>
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

using std::chrono::milliseconds;

// The ranks of one host, a thread each, meet here.
class HostComm {
public:
    explicit HostComm(unsigned ranks) : ranks_(ranks) {}

    void barrier()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        unsigned round = round_;
        if (++arrived_ == ranks_) {
            arrived_ = 0;
            ++round_;
            all_.notify_all();
        }
        all_.wait(guard, [&] { return round_ != round; });
    }

private:
    std::mutex mutex_;
    std::condition_variable all_;
    unsigned ranks_, arrived_ = 0, round_ = 0;
};

// One rank of the model. Its thread runs what is in its queue, until that is closed, together with the other ranks.
class Engine {
public:
    Engine(HostComm &comm, unsigned rank) : comm_(comm), rank_(rank), thread_([this] { loop(); }) {}

    ~Engine()
    {
        closed_ = true;
        thread_.join();
    }

private:
    void loop()
    {
        while (!closed_) {
            std::this_thread::sleep_for(milliseconds(rank_ ? 1 : 20)); // the first rank schedules
            if (closed_)
                return;
            comm_.barrier();
        }
    }

    HostComm &comm_;
    unsigned rank_;
    std::atomic<bool> closed_{false};
    std::thread thread_;
};

// As InternLM/lmdeploy#4770: the engines of tensor parallel ranks are destroyed one after the other. The first has left
// its loop when the second one waits for it in the communication on the host.
int engines_destroyed_in_turn()
{
    HostComm comm(2);
    std::vector<std::unique_ptr<Engine>> engines;
    for (unsigned rank = 0; rank < 2; ++rank)
        engines.push_back(std::make_unique<Engine>(comm, rank));
    std::this_thread::sleep_for(milliseconds(300));
    at("main");
    for (auto &engine : engines)
        engine.reset();
    return 0;
}

// A ring in shared memory. Who writes allocates a place, fills it, and commits it in the order of the places.
struct Ring {
    std::atomic<unsigned> head{0}, tail{0}, read{0};
    unsigned words[1 << 10];

    unsigned allocate() { return head.fetch_add(1); }

    void commit(unsigned place)
    {
        const timespec quick{0, 666};
        while (tail.load() != place)
            nanosleep(&quick, nullptr);
        tail.store(place + 1);
    }

    void write(unsigned word)
    {
        unsigned place = allocate();
        words[place % (1 << 10)] = word;
        commit(place);
    }
};

pid_t start(const std::function<void()> &work)
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        work();
        _exit(0);
    }
    return child;
}

// As rixed/ramen#1246: a worker was killed between the allocation of a place and its commit. All that write after it
// wait for their turn, for ever.
int commit_behind_a_killed_one()
{
    void *memory = mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto *ring = new (memory) Ring;
    pid_t killed = start([=] {
        ring->write(1);
        ring->allocate();
        pause();
    });
    while (ring->head.load() < 2)
        usleep(1000);
    kill(killed, SIGKILL);
    waitpid(killed, nullptr, 0);
    std::vector<pid_t> workers;
    for (const char *role : {"worker0", "worker1"})
        workers.push_back(start([=] {
            at(role);
            ring->write(2);
        }));
    at("main");
    for (pid_t worker : workers)
        waitpid(worker, nullptr, 0);
    return 0;
}

template <class Item> class BoundedQueue {
public:
    explicit BoundedQueue(size_t most) : most_(most) {}

    void push(Item item)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        room_.wait(guard, [this] { return items_.size() < most_; });
        items_.push_back(std::move(item));
        filled_.notify_one();
    }

    Item pop()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        filled_.wait(guard, [this] { return !items_.empty(); });
        Item item = std::move(items_.front());
        items_.pop_front();
        room_.notify_one();
        return item;
    }

    size_t size()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return items_.size();
    }

private:
    std::mutex mutex_;
    std::condition_variable room_, filled_;
    std::deque<Item> items_;
    size_t most_;
};

struct Sequence {
    unsigned id, tokens;
};

// Takes sequences from the queue of those that wait. When there is no memory for all, the last one is sent back there.
class Scheduler {
public:
    void submit(Sequence sequence) { waiting_.push(sequence); }

    void run()
    {
        for (unsigned step = 0;; ++step) {
            while (running_.size() < 4)
                running_.push_back(waiting_.pop());
            for (auto &sequence : running_)
                sequence.tokens += 64;
            std::this_thread::sleep_for(milliseconds(20));
            if (step >= 20)
                preempt();
            finish();
        }
    }

    void wait_for(unsigned id)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        finished_.wait(guard, [&] { return done_[id]; });
    }

    size_t waiting() { return waiting_.size(); }

    std::atomic<bool> preempts{false};

private:
    void preempt()
    {
        preempts = true;
        Sequence last = running_.back();
        running_.pop_back();
        waiting_.push(last);
    }

    void finish()
    {
        while (!running_.empty() && running_.front().tokens >= 256) {
            std::lock_guard<std::mutex> guard(mutex_);
            done_[running_.front().id] = true;
            finished_.notify_all();
            running_.pop_front();
        }
    }

    BoundedQueue<Sequence> waiting_{8};
    std::deque<Sequence> running_;
    std::mutex mutex_;
    std::condition_variable finished_;
    std::map<unsigned, bool> done_;
};

// As tenstorrent/tt-inference-server#2232: the scheduler gives a sequence back to the queue of those that wait. New
// requests have filled it, and nobody but the scheduler takes from it.
int scheduler_returns_to_full_queue()
{
    Scheduler scheduler;
    std::vector<std::thread> threads;
    threads.emplace_back([&] { scheduler.run(); });
    for (unsigned client = 0; client < 16; ++client)
        threads.emplace_back([&scheduler, client] {
            for (unsigned number = 1;; ++number) {
                unsigned id = number * 16 + client;
                scheduler.submit({id, 0});
                scheduler.wait_for(id);
            }
        });
    while (!scheduler.preempts)
        usleep(1000);
    at("main");
    for (auto &thread : threads)
        thread.join();
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"engines-destroyed-in-turn", engines_destroyed_in_turn},
        {"commit-behind-a-killed-one", commit_behind_a_killed_one},
        {"scheduler-returns-to-full-queue", scheduler_returns_to_full_queue},
    };
    return programs.at(argv[1])();
}
