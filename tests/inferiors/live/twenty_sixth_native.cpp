// C++ programs that hang, and healthy ones, twenty-sixth set: `twenty_sixth_native NAME FOLDER`.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
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

using std::chrono::milliseconds;

void pause_until(const std::function<bool()> &known)
{
    while (!known())
        std::this_thread::sleep_for(milliseconds(1));
}

// Its threads take tasks until it is stopped.
class HThreadPool {
public:
    using Task = std::function<void()>;

    // who wants to know that a thread has found nothing to do
    std::function<void()> on_idle = [] {};

    explicit HThreadPool(int count)
    {
        for (int number = 0; number < count; ++number)
            threads_.emplace_back([this] { work(); });
    }

    ~HThreadPool() { stop(); }

    void commit(Task task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push_back(std::move(task));
        changed_.notify_one();
    }

    void stop()
    {
        if (!running_.exchange(false))
            return;
        changed_.notify_all();
        told = true;
        at("main");
        for (auto &thread : threads_)
            thread.join();
    }

    std::atomic<bool> told{false};

private:
    bool wanted()
    {
        bool found = !running_ || !tasks_.empty();
        if (!found)
            on_idle();
        return found;
    }

    void work()
    {
        while (running_) {
            std::unique_lock<std::mutex> guard(mutex_);
            changed_.wait(guard, [this] { return wanted(); });
            if (!running_)
                return;
            Task task = std::move(tasks_.front());
            tasks_.pop_front();
            guard.unlock();
            task();
        }
    }

    std::atomic<bool> running_{true};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> tasks_;
    std::vector<std::thread> threads_;
};

// As ithewei/libhv#736: a pool is stopped by a variable that is atomic, and changed without the lock. A thread has
// looked at it and not begun to wait when that is told to all threads; it waits after that, and is joined.
int stops_its_pool()
{
    std::atomic<int> done{0}, looked{0};
    HThreadPool pool(1);
    for (int number = 0; number < 8; ++number)
        pool.commit([&] { ++done; });
    pause_until([&] { return done == 8; });
    std::atomic<bool> last{false};
    pool.commit([&] {
        pool.on_idle = [&] {
            ++looked;
            pause_until([&] { return pool.told.load(); }); // it is off the processor
        };
        last = true;
    });
    pause_until([&] { return last && looked > 0; });
    pool.stop();
    printf("stopped\n");
    return 0;
}

// Entries of directories by their names; each belongs to a node.
struct Names {
    struct Node {
        std::mutex lock;
        int references = 1;
    };

    std::mutex hash_lock;
    std::map<std::string, std::shared_ptr<Node>> entries;
    std::atomic<int> within{0};

    void meet()
    {
        ++within;
        pause_until([this] { return within >= 2; });
    }

    std::shared_ptr<Node> lookup(const std::string &name, bool together = false)
    {
        std::lock_guard<std::mutex> all(hash_lock);
        auto found = entries[name];
        if (together)
            meet();
        std::lock_guard<std::mutex> one(found->lock);
        ++found->references;
        return found;
    }

    void rename(const std::string &name, const std::string &to, bool together = false)
    {
        auto node = lookup(name);
        std::lock_guard<std::mutex> one(node->lock);
        if (together)
            meet();
        std::lock_guard<std::mutex> all(hash_lock);
        entries[to] = node;
    }
};

// As cloudius-systems/osv#1502: a look-up has the lock of all entries and takes that of a node. Who renames has the
// lock of the node and takes that of all entries. The others that look something up wait behind them.
int looks_up_names()
{
    static Names names;
    for (int number = 0; number < 8; ++number)
        names.entries["base/" + std::to_string(number)] = std::make_shared<Names::Node>();
    names.lookup("base/1");
    names.rename("base/2", "base/two");
    std::vector<std::thread> clients;
    clients.emplace_back([] { names.rename("base/3", "base/three", true); });
    pause_until([] { return names.within == 1; });
    clients.emplace_back([] { names.lookup("base/3", true); });
    pause_until([] { return names.within == 2; });
    for (int number = 4; number < 8; ++number)
        clients.emplace_back([number] { names.lookup("base/" + std::to_string(number)); });
    at("main");
    for (auto &client : clients)
        client.join();
    return 0;
}

// Opens when it was counted down to nothing.
class Latch {
public:
    explicit Latch(int count) : count_(count) {}

    void count_down()
    {
        if (--count_ == 0)
            opened_.notify_all();
    }

    int left() const { return count_; }

    void wait(const std::function<void(int)> &report)
    {
        while (int left = count_) {
            report(left);
            std::unique_lock<std::mutex> guard(mutex_);
            opened_.wait(guard);
        }
    }

private:
    std::atomic<int> count_;
    std::mutex mutex_;
    std::condition_variable opened_;
};

// Operations for some threads, which wait for the next one when there is none.
class OperationThreads {
public:
    explicit OperationThreads(int count)
    {
        for (int number = 0; number < count; ++number)
            std::thread([this] { work(); }).detach();
    }

    void add(std::function<void()> operation)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        operations_.push_back(std::move(operation));
        added_.notify_one();
    }

private:
    void work()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            added_.wait(guard, [this] { return !operations_.empty(); });
            auto operation = std::move(operations_.front());
            operations_.pop_front();
            guard.unlock();
            operation();
        }
    }

    std::mutex mutex_;
    std::condition_variable added_;
    std::deque<std::function<void()>> operations_;
};

// As vsg-dev/VulkanSceneGraph#164: a latch is looked at before its lock is taken, and waited for after that. In between
// the last operation has counted it down and said so.
int compiles_on_all_threads()
{
    static OperationThreads threads(3);
    static std::atomic<bool> reported{false};
    for (int frame = 0; frame < 2; ++frame) {
        static std::atomic<int> finished;
        auto latch = std::make_shared<Latch>(6);
        finished = 0;
        reported = frame == 0;
        for (int number = 0; number < 6; ++number)
            threads.add([latch, number] {
                if (number == 5)
                    pause_until([] { return reported.load(); }); // a large object
                latch->count_down();
                ++finished;
            });
        if (frame == 0)
            pause_until([] { return finished == 6; });
        else
            pause_until([&] { return latch->left() == 1; });
        latch->wait([&](int left) {
            printf("frame %d: %d objects to compile\n", frame, left);
            fflush(stdout);
            reported = true;
            pause_until([] { return finished == 6; });
            at("main");
        });
    }
    return 0;
}

// Tasks of a stream are done by a thread of its own, in order.
class StreamThread {
public:
    StreamThread() : thread_([this] { work(); }) {}

    ~StreamThread()
    {
        synchronize();
        end();
        thread_.join();
    }

    void enqueue(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push_back(std::move(task));
        changed_.notify_one();
    }

    void synchronize()
    {
        auto reached = std::make_shared<std::promise<void>>();
        auto waits = reached->get_future();
        enqueue([reached] { reached->set_value(); });
        waits.wait();
    }

    void end()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        ended_ = true;
        changed_.notify_one();
    }

private:
    void work()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            changed_.wait(guard, [this] { return ended_ || !tasks_.empty(); });
            if (ended_)
                return;
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            guard.unlock();
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    bool ended_ = false;
    std::thread thread_;
};

struct Scheduler {
    StreamThread processor, loader;

    static Scheduler &get()
    {
        static Scheduler scheduler;
        return scheduler;
    }
};

// As ml-explore/mlx#1738: at the exit of a process the threads of its streams end first. A scheduler that is destroyed
// after that gives a task to one of them, to know that all before it are done, and waits for it.
int streams_end_with_the_process()
{
    Scheduler &scheduler = Scheduler::get();
    std::atomic<double> total{0};
    for (int number = 0; number < 32; ++number)
        scheduler.processor.enqueue([&total, number] { total = total + number; });
    scheduler.processor.synchronize();
    printf("the sum is %g\n", total.load());
    fflush(stdout);
    atexit([] {
        Scheduler::get().processor.end();
        Scheduler::get().loader.end();
        at("main");
    });
    return 0;
}

// A program of small steps, which computes the terms of a sequence.
class Program {
public:
    struct Step {
        char operation;
        int64_t operand;
    };

    explicit Program(std::vector<Step> steps) : steps(std::move(steps)) {}

    int64_t term(int64_t index) const
    {
        int64_t value = index;
        for (const Step &step : steps) {
            if (step.operation == '+')
                value += step.operand;
            else if (step.operation == '*')
                value = value * step.operand % 1'000'003;
            else
                for (int64_t turn = 0; turn < step.operand; ++turn)
                    value = (value * value + turn) % 1'000'003;
        }
        return value;
    }

    bool same(const Program &other, int terms) const
    {
        for (int index = 0; index < terms; ++index)
            if (term(index) != other.term(index))
                return false;
        return true;
    }

    std::vector<Step> steps;
};

// Healthy, as loda-lang/loda-cpp#206: a program is made as small as possible. Each step is left out in turn, and many
// terms are compared, which takes minutes; nothing is said until then.
int minimizes_a_program()
{
    const Program program({{'+', 3}, {'r', 5'000'000}, {'*', 17}, {'+', 0}, {'r', 3'000'000}, {'*', 1}});
    Program smallest = program;
    at("main");
    for (int round = 0; round < 100'000; ++round)
        for (size_t number = 0; number < smallest.steps.size(); ++number) {
            Program tried = smallest;
            tried.steps.erase(tried.steps.begin() + number);
            if (tried.same(program, 100))
                smallest = std::move(tried);
        }
    printf("%zu steps\n", smallest.steps.size());
    return 0;
}

// Copies in a thread; the window is drawn by another one.
class CopyTask {
public:
    static constexpr size_t BLOCK = 1 << 18;

    CopyTask(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to))
    {
        thread_ = std::thread([this] { copy(); });
    }

    bool wait_for(milliseconds time)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        return ended_.wait_for(guard, time, [this] { return done_; });
    }

    std::atomic<long> copied{0};

private:
    void copy()
    {
        std::vector<char> block(BLOCK);
        int in = open(from_.c_str(), O_RDONLY), out = open(to_.c_str(), O_WRONLY | O_CREAT, 0600);
        const long all = 40'000; // blocks; the source is a disk that has the same over and over
        while (copied < all) {
            off_t place = copied % 32 * BLOCK;
            ssize_t length = pread(in, block.data(), BLOCK, place);
            if (length <= 0 || pwrite(out, block.data(), length, place) != length)
                break;
            fdatasync(out);
            ++copied;
            std::this_thread::sleep_for(milliseconds(20)); // as slow as the other disk is
        }
        std::lock_guard<std::mutex> guard(mutex_);
        done_ = true;
        ended_.notify_all();
    }

    std::string from_, to_;
    std::mutex mutex_;
    std::condition_variable ended_;
    bool done_ = false;
    std::thread thread_;
};

// Healthy, as files-community/Files#10774: a large file is copied to another disk. No progress is shown, so that it
// seems that nothing happens.
int copies_a_large_file()
{
    std::string from = folder + "/film", to = folder + "/film (copy)";
    std::ofstream(from) << std::string(32 * CopyTask::BLOCK, 'x');
    CopyTask task(from, to);
    pause_until([&] { return task.copied > 4; });
    at("main");
    while (!task.wait_for(milliseconds(200)))
        ;
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"stops-its-pool", stops_its_pool},
        {"looks-up-names", looks_up_names},
        {"compiles-on-all-threads", compiles_on_all_threads},
        {"streams-end-with-the-process", streams_end_with_the_process},
        {"minimizes-a-program", minimizes_a_program},
        {"copies-a-large-file", copies_a_large_file},
    };
    return programs.at(argv[1])();
}
