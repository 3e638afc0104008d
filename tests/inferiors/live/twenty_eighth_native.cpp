// C++ programs that hang, and healthy ones, twenty-eighth set: `twenty_eighth_native NAME FOLDER`.
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <netinet/in.h>
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

void until(const std::atomic<bool> &flag)
{
    while (!flag)
        std::this_thread::yield();
}

// Threads that do what they are given. Each has a flag by which it is told to stop.
class WorkerPool {
public:
    explicit WorkerPool(int count)
    {
        for (int number = 0; number < count; ++number)
            workers_.push_back(std::make_unique<Worker>());
        for (auto &worker : workers_)
            worker->thread = std::thread([this, &stop = worker->stop] { work(stop); });
    }

    ~WorkerPool()
    {
        until(looked_);
        for (auto &worker : workers_)
            worker->stop = true;
        changed_.notify_all();
        told_ = true;
        at("main");
        for (auto &worker : workers_)
            worker->thread.join();
    }

    void run(int count, const std::function<void(int)> &task)
    {
        std::atomic<int> left{count};
        {
            std::lock_guard<std::mutex> guard(mutex_);
            for (int number = 0; number < count; ++number)
                tasks_.push_back([&, number] {
                    task(number);
                    --left;
                });
            changed_.notify_all();
        }
        while (left)
            std::this_thread::yield();
        std::lock_guard<std::mutex> guard(mutex_);
        ++batches_;
        tasks_.push_back([] {});
        changed_.notify_one();
    }

private:
    struct Worker {
        std::thread thread;
        std::atomic<bool> stop{false};
    };

    // The last one that looks, does so just before all are told.
    bool has_work(const std::atomic<bool> &stop)
    {
        bool wanted = stop || !tasks_.empty();
        if (!wanted && batches_ == 2 && !looked_.exchange(true))
            until(told_);
        return wanted;
    }

    void work(const std::atomic<bool> &stop)
    {
        while (true) {
            std::function<void()> task;
            {
                std::unique_lock<std::mutex> guard(mutex_);
                changed_.wait(guard, [&] { return has_work(stop); });
                if (tasks_.empty())
                    return;
                task = std::move(tasks_.front());
                tasks_.pop_front();
            }
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::atomic<bool> looked_{false}, told_{false};
    int batches_ = 0;
};

// As ScrollPrize/villa#1688: the destructor of a pool sets the flags and notifies without the mutex. A worker had
// looked at its flag and was not asleep yet: it sleeps after that, and is joined.
int pool_of_a_sampler()
{
    std::atomic<int> sum{0};
    WorkerPool pool(4);
    for (int batch = 0; batch < 2; ++batch)
        pool.run(17, [&](int number) { sum += number; });
    printf("%d\n", sum.load());
    fflush(stdout);
    return 0;
}

// The state of a node: the chain has a lock, the wallet has one.
struct Node {
    std::recursive_mutex chain, wallet;
    std::atomic<bool> connecting{false}, spending{false};
    int height = 0, coins = 0;

    void connect_block(bool with_another)
    {
        std::lock_guard<std::recursive_mutex> guard(chain);
        ++height;
        if (with_another) {
            connecting = true;
            until(spending);
        }
        std::lock_guard<std::recursive_mutex> inner(wallet);
        coins += 50;
    }

    void spend(bool with_another)
    {
        std::lock_guard<std::recursive_mutex> guard(wallet);
        --coins;
        if (with_another) {
            spending = true;
            until(connecting);
        }
        std::lock_guard<std::recursive_mutex> inner(chain);
        printf("at height %d\n", height);
    }
};

// As DeFiCh/ain#368: recursive mutexes are taken in one order here and in another one there.
int block_and_payment()
{
    Node node;
    node.connect_block(false);
    node.spend(false);
    std::thread payments([&] { node.spend(true); });
    until(node.spending);
    at("main");
    node.connect_block(true);
    payments.join();
    return 0;
}

// A log of all threads; a record is written with the lock for writing.
class Log {
public:
    explicit Log(const std::string &path) : file_(path) {}

    void info(const std::string &message, const std::function<void()> &flushed = [] {})
    {
        pthread_rwlock_wrlock(&lock_);
        file_ << message << std::endl;
        flushed();
        pthread_rwlock_unlock(&lock_);
    }

private:
    pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
    std::ofstream file_;
};

// As HardySimpson/zlog#62: while a thread writes to the log, the process forks, and the child has the lock as if that
// thread had it there. It logs.
int record_after_the_fork()
{
    Log log(folder + "/engine.log");
    std::atomic<bool> writing{false}, forked{false};
    log.info("begun");
    std::thread writer([&] {
        log.info("a record of the thread", [&] {
            writing = true;
            until(forked);
        });
    });
    until(writing);
    pid_t child = fork();
    if (child == 0) {
        at("child");
        log.info("a record of the child");
        _exit(0);
    }
    forked = true;
    writer.join();
    log.info("a record of the parent");
    at("main");
    waitpid(child, nullptr, 0);
    return 0;
}

// A value, and who is told when it changes.
class Observable {
public:
    using Observer = std::function<void(int)>;

    int subscribe(Observer observer)
    {
        pthread_mutex_lock(&mutex_);
        int token = next_++;
        observers_[token] = std::move(observer);
        pthread_mutex_unlock(&mutex_);
        return token;
    }

    void unsubscribe(int token)
    {
        pthread_mutex_lock(&mutex_);
        observers_.erase(token);
        pthread_mutex_unlock(&mutex_);
    }

    void update(int value)
    {
        pthread_mutex_lock(&mutex_);
        for (auto &observer : observers_)
            observer.second(value);
        pthread_mutex_unlock(&mutex_);
    }

private:
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    std::map<int, Observer> observers_;
    int next_ = 0;
};

// As JensRavens/Interstellar#68: an observer that has seen what it waits for is removed, by itself.
int observer_of_a_value()
{
    Observable progress;
    int token = -1;
    token = progress.subscribe([&](int value) {
        printf("%d\n", value);
        fflush(stdout);
        if (value == 5) {
            at("main");
            progress.unsubscribe(token);
        }
    });
    progress.update(10);
    progress.update(5);
    return 0;
}

struct Message {
    char text[32];
};

// One call of a client: messages come and are answered, until it ends.
class Stream {
public:
    explicit Stream(int connection) : connection_(connection) {}
    ~Stream() { close(connection_); }
    void send(const Message &message) { ::send(connection_, &message, sizeof message, MSG_NOSIGNAL); }

    bool receive(Message &message)
    {
        return recv(connection_, &message, sizeof message, MSG_WAITALL) == sizeof message;
    }

private:
    int connection_;
};

class Server {
public:
    Server() : listener_(socket(AF_INET, SOCK_STREAM, 0))
    {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        bind(listener_, reinterpret_cast<sockaddr *>(&address), length);
        listen(listener_, 8);
        getsockname(listener_, reinterpret_cast<sockaddr *>(&address), &length);
        address_ = address;
    }

    int connect_to() const
    {
        int connection = socket(AF_INET, SOCK_STREAM, 0);
        connect(connection, reinterpret_cast<const sockaddr *>(&address_), sizeof address_);
        return connection;
    }

    void start_one()
    {
        int connection = accept(listener_, nullptr, nullptr);
        handlers_.emplace_back([this, connection] {
            Stream stream(connection);
            Message message;
            while (stream.receive(message)) {
                stream.send(message);
                ++answered;
            }
        });
    }

    // No more calls are taken; those that have begun are waited for.
    void stop()
    {
        close(listener_);
        for (auto &handler : handlers_)
            handler.join();
    }

    std::atomic<int> answered{0};

private:
    int listener_;
    sockaddr_in address_{};
    std::vector<std::thread> handlers_;
};

// As userver-framework/userver#440: a server stops while a client has a stream in both directions. Its handler reads
// the next message, which is not cancelled, and the server waits for the handler.
int server_with_a_stream()
{
    Server server;
    pid_t client = fork();
    if (client == 0) {
        Stream stream(server.connect_to());
        Message message{"hello"};
        for (int number = 0; number < 3; ++number) {
            stream.send(message);
            stream.receive(message);
        }
        at("client");
        stream.receive(message);
        _exit(0);
    }
    server.start_one();
    while (server.answered < 3)
        std::this_thread::yield();
    at("main");
    server.stop();
    return 0;
}

// Each operation may have its result in one of several layouts; to change from one to another costs time.
class LayoutOptimizer {
public:
    explicit LayoutOptimizer(size_t operations) : cost_(operations)
    {
        unsigned state = 1;
        for (auto &costs : cost_)
            for (auto &cost : costs)
                cost = (state = state * 1664525u + 1013904223u) >> 20;
    }

    unsigned long best(size_t first, size_t last, unsigned layout)
    {
        if (last - first == 1)
            return cost_[first][layout];
        unsigned long least = ~0ul;
        for (size_t middle = first + 1; middle < last; ++middle)
            for (unsigned other = 0; other < LAYOUTS; ++other) {
                unsigned long left = best(first, middle, layout), right = best(middle, last, other);
                least = std::min(least, left + right + (other == layout ? 0 : 3));
            }
        return least;
    }

    static constexpr unsigned LAYOUTS = 4;

private:
    std::vector<std::array<unsigned, LAYOUTS>> cost_;
};

// Healthy, as tenstorrent/tt-mlir#3446: a model is compiled with the optimizer, which tries very many layouts, and does
// not say how far it is.
int layouts_of_a_model()
{
    LayoutOptimizer small(4), large(40);
    printf("%lu\n", small.best(0, 4, 0));
    fflush(stdout);
    at("main");
    printf("%lu\n", large.best(0, 40, 0));
    return 0;
}

float contract(const std::vector<float> &values, int depth, size_t place)
{
    if (depth == 0)
        return values[place % values.size()] * 1.0001f;
    float sum = 0;
    for (int index = 0; index < 16; ++index)
        sum += contract(values, depth - 1, place * 16 + index);
    return sum;
}

// Healthy, as facebookresearch/TensorComprehensions#108: a candidate of the tuner is a loop in ten dimensions. A thread
// runs it, and the main thread waits for it.
int candidates_of_the_tuner()
{
    std::vector<float> values(1 << 12, 0.5f);
    for (int depth : {2, 3, 14}) {
        std::packaged_task<float()> candidate([&] { return contract(values, depth, 1); });
        std::future<float> result = candidate.get_future();
        std::thread runner(std::move(candidate));
        if (depth == 14)
            at("main");
        printf("%g\n", result.get());
        runner.join();
    }
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"stops-its-workers", pool_of_a_sampler},      {"connects-a-block", block_and_payment},
        {"logs-in-the-child", record_after_the_fork},  {"observes-until-five", observer_of_a_value},
        {"stops-with-a-stream", server_with_a_stream}, {"lays-out-a-graph", layouts_of_a_model},
        {"tunes-a-deep-loop", candidates_of_the_tuner},
    };
    return programs.at(argv[1])();
}
