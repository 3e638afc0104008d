// C++ programs that hang, seventeenth set: `seventeenth_native NAME FOLDER`.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
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

using std::chrono::milliseconds;

// A ring for messages of many threads, without a lock. Each cell says whose turn it is.
class Ring {
public:
    Ring()
    {
        for (size_t number = 0; number < SIZE; ++number)
            cells_[number].turn = number;
    }

    bool enqueue(const std::string &message)
    {
        size_t place = end_.load();
        while (true) {
            Cell &cell = cells_[place % SIZE];
            size_t turn = cell.turn.load(std::memory_order_acquire);
            if (turn == place && end_.compare_exchange_weak(place, place + 1)) {
                cell.message = message;
                cell.turn.store(place + 1, std::memory_order_release);
                return true;
            }
            if (turn < place)
                return false;
            place = end_.load();
        }
    }

    bool dequeue(std::string &message)
    {
        size_t place = begin_.load();
        Cell &cell = cells_[place % SIZE];
        if (cell.turn.load(std::memory_order_acquire) != place + 1)
            return false;
        message = std::move(cell.message);
        cell.turn.store(place + SIZE, std::memory_order_release);
        begin_.store(place + 1);
        return true;
    }

    bool empty() const { return begin_.load() == end_.load(); }

private:
    static constexpr size_t SIZE = 8192;
    struct Cell {
        std::atomic<size_t> turn{0};
        std::string message;
    };
    Cell cells_[SIZE];
    std::atomic<size_t> begin_{0}, end_{0};
};

// Its messages are written by a thread of its own.
class AsyncLogger {
public:
    AsyncLogger() : file_(fopen((folder + "/log.txt").c_str(), "w"))
    {
        std::thread([this] { work(); }).detach();
    }

    void log(const std::string &message)
    {
        while (!ring_.enqueue(message))
            std::this_thread::sleep_for(milliseconds(1));
    }

    // until there is none left to write
    void flush()
    {
        while (!ring_.empty())
            std::this_thread::sleep_for(milliseconds(5));
        fflush(file_);
    }

private:
    void work()
    {
        std::string message;
        while (true) {
            if (!ring_.dequeue(message)) {
                std::this_thread::sleep_for(milliseconds(1));
                continue;
            }
            fprintf(file_, "%s\n", message.c_str());
            fflush(file_);
            std::this_thread::sleep_for(milliseconds(1));
        }
    }

    Ring ring_;
    FILE *file_;
};

// As gabime/spdlog#664: a flush waits until the queue is empty, and not only until what was in it is written. Another
// thread puts messages into it faster than they are written.
int flush_until_all_is_written()
{
    static auto *logger = new AsyncLogger;
    logger->log("the model is loaded");
    logger->flush();
    std::atomic<int> count{0};
    std::thread([&count] {
        while (true)
            logger->log("a request, number " + std::to_string(count++));
    }).detach();
    while (count < 8500)
        std::this_thread::sleep_for(milliseconds(1));
    at("main");
    logger->flush();
    return 0;
}

// Loops are dealt to its threads, one loop after the other.
class ThreadManager {
public:
    explicit ThreadManager(int count)
    {
        for (int number = 1; number <= count; ++number)
            std::thread([this, number] { work(number); }).detach();
        threads_ = count + 1;
    }

    void parallel_for(int count, const std::function<void(int)> &body)
    {
        std::lock_guard<std::mutex> execution(execution_);
        {
            std::lock_guard<std::mutex> guard(mutex_);
            body_ = &body;
            count_ = count;
            left_ = threads_ - 1;
            ++round_;
            started_.notify_all();
        }
        share(0, count, body);
        std::unique_lock<std::mutex> guard(mutex_);
        ended_.wait(guard, [this] { return left_ == 0; });
    }

private:
    void share(int number, int count, const std::function<void(int)> &body)
    {
        for (int item = number; item < count; item += threads_)
            body(item);
    }

    void work(int number)
    {
        int seen = 0;
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            started_.wait(guard, [&] { return round_ != seen; });
            seen = round_;
            const auto &body = *body_;
            int count = count_;
            guard.unlock();
            share(number, count, body);
            guard.lock();
            if (--left_ == 0)
                ended_.notify_one();
        }
    }

    std::mutex execution_, mutex_;
    std::condition_variable started_, ended_;
    const std::function<void(int)> *body_ = nullptr;
    int threads_ = 1, count_ = 0, left_ = 0, round_ = 0;
};

// As nntrainer/nntrainer#4134: the layers are computed in parallel, and one of them computes its heads in parallel. The
// inner loop wants the lock that the outer one has on the same thread, until it has ended.
int parallel_inside_parallel()
{
    static auto *manager = new ThreadManager(2);
    std::vector<double> layers(6, 1.0);
    manager->parallel_for(6, [&](int layer) { layers[layer] *= 2; });
    at("main");
    manager->parallel_for(6, [&](int layer) {
        if (layer % 3 != 0) {
            layers[layer] *= 2;
            return;
        }
        std::vector<double> heads(8, layers[layer]);
        manager->parallel_for(8, [&](int head) { heads[head] += head; });
        layers[layer] = heads[7];
    });
    return 0;
}

// Consumers of a topic, as a server has them for its clients.
struct Consumers {
    std::mutex manager, state, handler;
    std::atomic<int> begun{0};

    // all three are in the midst of it
    void meet()
    {
        ++begun;
        while (begun < 3)
            std::this_thread::sleep_for(milliseconds(1));
    }

    void expire()
    {
        std::lock_guard<std::mutex> all(manager);
        meet();
        std::lock_guard<std::mutex> one(state);
    }

    void read()
    {
        std::lock_guard<std::mutex> one(state);
        meet();
        std::lock_guard<std::mutex> rebalance(handler);
    }

    void handle()
    {
        std::lock_guard<std::mutex> request(handler);
        meet();
        std::lock_guard<std::mutex> all(manager);
    }
};

// As confluentinc/kafka-rest#928: the thread that ends old consumers has the lock of all of them and wants that of one.
// A reader has this one and wants that of the handler while it polls, and the handler wants that of all.
int expiry_poll_and_handler()
{
    Consumers consumers;
    std::thread expiry([&] { consumers.expire(); }), reader([&] { consumers.read(); }),
        handler([&] { consumers.handle(); });
    while (consumers.begun < 3)
        std::this_thread::sleep_for(milliseconds(1));
    at("main");
    expiry.join();
    reader.join();
    handler.join();
    return 0;
}

double multiply(int size)
{
    std::vector<double> left(size * size, 0.5), right(size * size, 2.0);
    double total = 0;
#pragma omp parallel for num_threads(3) reduction(+ : total)
    for (int row = 0; row < size; ++row)
        for (int column = 0; column < size; ++column)
            for (int inner = 0; inner < size; ++inner)
                total += left[row * size + inner] * right[inner * size + column];
    return total;
}

// As OpenMathLib/OpenBLAS#4080: a product has been computed by the threads of OpenMP, which are not stopped before a
// process is forked. The child computes one as well; it has none of the threads, and waits for them.
int parallel_region_after_fork()
{
    printf("%g\n", multiply(64));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        at("child");
        printf("%g\n", multiply(64));
        _exit(0);
    }
    at("main");
    waitpid(child, nullptr, 0);
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"flush-until-all-is-written", flush_until_all_is_written},
        {"parallel-inside-parallel", parallel_inside_parallel},
        {"expiry-poll-and-handler", expiry_poll_and_handler},
        {"parallel-region-after-fork", parallel_region_after_fork},
    };
    return programs.at(argv[1])();
}
