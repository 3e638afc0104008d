// C++ programs that hang, and healthy ones, twenty-fourth set: `twenty_fourth_native NAME FOLDER`.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
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

void wait_until(const std::atomic<bool> &word)
{
    while (!word)
        std::this_thread::yield();
}

// Jobs are posted, and done by its threads until it is told to stop.
class ThreadPool {
public:
    explicit ThreadPool(int count)
    {
        for (int number = 0; number < count; ++number)
            threads_.emplace_back([this] { work(); });
    }

    ~ThreadPool()
    {
        wait_until(looked_);
        stop_ = true;
        condition_.notify_all();
        told_ = true;
        at("main");
        for (auto &thread : threads_)
            thread.join();
    }

    std::future<int> post(std::function<int()> job)
    {
        std::packaged_task<int()> task(std::move(job));
        auto result = task.get_future();
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push_back(std::move(task));
        condition_.notify_one();
        return result;
    }

    // who finds nothing to do the next time is slow
    void trace()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        slow_ = true;
        condition_.notify_all();
    }

private:
    bool has_something()
    {
        bool stop = stop_, found = stop || !tasks_.empty();
        if (!found && slow_.exchange(false)) {
            looked_ = true;
            wait_until(told_);
        }
        return found;
    }

    void work()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            condition_.wait(guard, [this] { return has_something(); });
            if (tasks_.empty())
                return;
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            guard.unlock();
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable condition_;
    std::deque<std::packaged_task<int()>> tasks_;
    std::vector<std::thread> threads_;
    std::atomic<bool> stop_{false}, slow_{false}, looked_{false}, told_{false};
};

// As Eyescale/Lunchbox#296: the destructor sets the word and wakes all, without the lock. A thread has looked at the
// word just before, and waits from then on.
int stops_without_the_lock()
{
    ThreadPool pool(2);
    int total = 0;
    for (int number = 0; number < 8; ++number)
        total += pool.post([number] { return number * number; }).get();
    printf("%d\n", total);
    fflush(stdout);
    pool.trace();
    return 0;
}

// Many may have it, or one alone. As soon as one waits to have it alone, no more get in.
class Latch {
public:
    void lock_shared()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return !exclusive_ && waiting_ == 0; });
        ++shared_;
    }

    void unlock_shared()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        --shared_;
        changed_.notify_all();
    }

    void lock()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        ++waiting_;
        pending_ = true;
        changed_.wait(guard, [this] { return !exclusive_ && shared_ == 0; });
        --waiting_;
        exclusive_ = true;
    }

    void unlock()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        exclusive_ = false;
        changed_.notify_all();
    }

    std::atomic<bool> pending_{false};

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int shared_ = 0, waiting_ = 0;
    bool exclusive_ = false;
};

// Locks of transactions. All regular operations have the latch with others, and the detector has it alone.
class LockManager {
public:
    void acquire()
    {
        latch_.lock_shared();
        in_acquire_ = true;
        wait_until(latch_.pending_);
        {
            std::lock_guard<std::mutex> bucket(bucket_);
            ++owners_;
        }
        latch_.unlock_shared();
    }

    void release_all()
    {
        std::lock_guard<std::mutex> bucket(bucket_);
        in_release_ = true;
        wait_until(latch_.pending_);
        latch_.lock_shared();
        --owners_;
        latch_.unlock_shared();
    }

    void detect_deadlocks()
    {
        wait_until(in_acquire_);
        wait_until(in_release_);
        latch_.lock();
        printf("%d owners, and no deadlock\n", owners_);
        latch_.unlock();
    }

    bool is_detecting() const { return latch_.pending_; }

private:
    Latch latch_;
    std::mutex bucket_;
    int owners_ = 0;
    std::atomic<bool> in_acquire_{false}, in_release_{false};
};

// As dibyendumajumdar/simpledbm#12: the detector waits for the latch, so that nobody else gets it. Who has it wants a
// bucket, and who has the bucket wants the latch.
int deadlock_detector()
{
    LockManager manager;
    std::thread detector([&] { manager.detect_deadlocks(); }), first([&] { manager.acquire(); }),
        second([&] { manager.release_all(); });
    while (!manager.is_detecting())
        std::this_thread::yield();
    at("main");
    first.join();
    second.join();
    detector.join();
    return 0;
}

// Lines go to a pipe, one after the other.
class Logger {
public:
    void set_target(int file) { file_ = file; }

    void log(const std::string &line)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (write(file_, (line + "\n").data(), line.size() + 1) < 0)
            ++missed_;
    }

private:
    std::mutex mutex_;
    int file_ = 2, missed_ = 0;
};

Logger logger;
std::atomic<bool> broken{false};

void sigpipe_handler(int number)
{
    broken = true;
    logger.log("received signal " + std::to_string(number));
}

// As firecracker-microvm/firecracker#6086: nobody reads the log any more, and the write of a line is answered by a
// signal. Its handler logs, in the thread that has the lock of the logger.
int logs_a_broken_pipe()
{
    int ends[2];
    if (pipe(ends) != 0)
        return 1;
    signal(SIGPIPE, sigpipe_handler);
    logger.set_target(ends[1]);
    logger.log("the machine has started");
    close(ends[0]);
    std::thread api([] {
        wait_until(broken);
        logger.log("a request of the API");
    });
    at("main");
    logger.log("the machine has booted");
    api.join();
    return 0;
}

// Of a model: each token is computed with all that were before it.
class Context {
public:
    static constexpr int SIZE = 512, TOKENS = 768, KEPT = 16;

    Context() : weights_(SIZE * SIZE, 0.001f), keys_(TOKENS * SIZE) {}

    void eval(int token)
    {
        std::vector<float> state(SIZE, float(token % 17)), next(SIZE);
        for (int layer = 0; layer < 4; ++layer) {
            std::thread helper([&] { rows(0, SIZE / 2, state, next); });
            rows(SIZE / 2, SIZE, state, next);
            helper.join();
            std::swap(state, next);
        }
        std::copy(state.begin(), state.end(), keys_.begin() + past_ * SIZE);
        ++past_;
    }

    bool is_full() const { return past_ == TOKENS; }

    // of what is there, the first tokens are kept, and half of the others is computed again
    void swap(const std::vector<int> &tokens)
    {
        past_ = KEPT;
        for (int number = TOKENS - (TOKENS - KEPT) / 2; number < TOKENS; ++number)
            eval(tokens[number]);
    }

    int past() const { return past_; }

private:
    void rows(int begin, int end, const std::vector<float> &state, std::vector<float> &next)
    {
        for (int row = begin; row < end; ++row) {
            float sum = 0;
            for (int column = 0; column < SIZE; ++column)
                sum += weights_[row * SIZE + column] * state[column];
            for (int before = 0; before < past_; ++before)
                sum += 1e-6f * keys_[before * SIZE + row];
            next[row] = std::tanh(sum);
        }
    }

    std::vector<float> weights_, keys_;
    int past_ = 0;
};

// Healthy, as ggml-org/llama.cpp#828: the context is full, and half of it is computed again. Until that is done there
// is no token, and it looks as if nothing goes on.
int swaps_its_context()
{
    Context context;
    std::vector<int> tokens;
    for (int number = 0;; ++number) {
        if (context.is_full()) {
            at("main");
            context.swap(tokens);
            tokens.resize(context.past());
        }
        context.eval(number);
        tokens.push_back(number);
        if (number % 50 == 0) {
            printf("token %d\n", number);
            fflush(stdout);
        }
    }
    return 0;
}

// All of its threads come to a barrier after each node of a graph, and wait for the others by running.
class Threadpool {
public:
    explicit Threadpool(int count) : count_(count) {}

    void barrier()
    {
        int round = round_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1) == count_ - 1) {
            arrived_ = 0;
            round_.fetch_add(1);
            return;
        }
        while (round_.load() == round)
            ;
    }

    void compute(int thread, int nodes)
    {
        volatile double sum = 0;
        for (int node = 0; node < nodes; ++node) {
            for (int number = thread; number < 2000; number += count_)
                sum = sum + number * 0.5;
            barrier();
        }
    }

private:
    int count_;
    std::atomic<int> arrived_{0}, round_{0};
};

// Healthy, as ggml-org/llama.cpp#29258: some contexts decode at once, each with its threads. There are more of them
// than cores, and who waits at a barrier does so on a core that another one needs.
int spins_at_barriers()
{
    constexpr int CONTEXTS = 4, THREADS = 2;
    std::atomic<long> tokens{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < CONTEXTS; ++number) {
        auto pool = std::make_shared<Threadpool>(THREADS);
        for (int thread = 0; thread < THREADS; ++thread)
            threads.emplace_back([pool, thread, &tokens] {
                while (true) {
                    pool->compute(thread, 64);
                    if (thread == 0 && ++tokens % 10 == 0) {
                        printf("%ld tokens\n", tokens.load());
                        fflush(stdout);
                    }
                }
            });
    }
    at("main");
    for (auto &thread : threads)
        thread.join();
    return 0;
}

// Attributes of all documents, in columns.
using Column = std::vector<unsigned>;

Column collect(int attribute, size_t documents)
{
    std::mt19937 random(attribute);
    Column column(documents);
    std::generate(column.begin(), column.end(), [&] { return random() % 1000003; });
    return column;
}

void build_secondary_index(const Column &column, int attribute)
{
    std::vector<unsigned> rows(column.size());
    for (size_t row = 0; row < rows.size(); ++row)
        rows[row] = row;
    std::stable_sort(rows.begin(), rows.end(), [&](unsigned one, unsigned two) { return column[one] < column[two]; });
    std::ofstream(folder + "/attribute" + std::to_string(attribute % 4), std::ios::binary)
        .write(reinterpret_cast<const char *>(rows.data()), 4096);
}

// Healthy, as manticoresoftware/manticoresearch#1012: all documents are collected and sorted, which is said. The
// indexes of their attributes are made after that, which is not.
int secondary_indexes()
{
    constexpr size_t DOCUMENTS = 1 << 21;
    std::vector<Column> columns;
    for (int attribute = 0; attribute < 4; ++attribute)
        columns.push_back(collect(attribute, DOCUMENTS));
    printf("collected %zu docs\nsorted, 100.0%% done\n", DOCUMENTS);
    fflush(stdout);
    at("main");
    for (int attribute = 0;; ++attribute)
        build_secondary_index(columns[attribute % 4], attribute);
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"stops-without-the-lock", stops_without_the_lock}, {"deadlock-detector", deadlock_detector},
        {"logs-a-broken-pipe", logs_a_broken_pipe},         {"swaps-its-context", swaps_its_context},
        {"spins-at-barriers", spins_at_barriers},           {"secondary-indexes", secondary_indexes},
    };
    return programs.at(argv[1])();
}
