// C++ programs of the twenty-first set: `twenty_first_native NAME FOLDER`.
#include <arpa/inet.h>
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
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
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

// A task goes to a thread that waits, the last one that began to; without one it is kept until a thread is free.
class ThreadPool {
public:
    explicit ThreadPool(int count)
    {
        for (int number = 0; number < count; ++number)
            threads_.emplace_back([this] { work(); });
    }

    ~ThreadPool()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        exiting_ = true;
        for (Waiter *waiter : waiters_)
            waiter->ready.notify_one();
        drained_.wait(guard, [this] { return outstanding_ == 0; });
        guard.unlock();
        for (auto &thread : threads_)
            thread.join();
    }

    void schedule(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        ++outstanding_;
        if (waiters_.empty()) {
            pending_.push_back(std::move(task));
            return;
        }
        Waiter *waiter = waiters_.back();
        waiters_.pop_back();
        waiter->task = std::move(task);
        waiter->ready.notify_one();
    }

private:
    struct Waiter {
        std::condition_variable ready;
        std::function<void()> task;
    };

    std::function<void()> next(std::unique_lock<std::mutex> &guard)
    {
        std::function<void()> task;
        if (!pending_.empty()) {
            task = std::move(pending_.front());
            pending_.pop_front();
            return task;
        }
        if (exiting_)
            return task;
        auto *waiter = new Waiter;
        waiters_.push_back(waiter);
        waiter->ready.wait(guard, [&] { return waiter->task || exiting_; });
        task.swap(waiter->task);
        return task;
    }

    void work()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (auto task = next(guard)) {
            guard.unlock();
            task();
            guard.lock();
            if (--outstanding_ == 0)
                drained_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable drained_;
    std::deque<std::function<void()>> pending_;
    std::vector<Waiter *> waiters_;
    std::vector<std::thread> threads_;
    bool exiting_ = false;
    int outstanding_ = 0;
};

// A computation that is divided in two, so many times.
void divide(ThreadPool &pool, std::atomic<int> &leaves, int level)
{
    if (level == 0) {
        ++leaves;
        return;
    }
    std::this_thread::sleep_for(milliseconds(100));
    pool.schedule([&pool, &leaves, level] { divide(pool, leaves, level - 1); });
    pool.schedule([&pool, &leaves, level] { divide(pool, leaves, level - 1); });
}

// As tensorflow/tensorflow#932: the destructor wakes all threads that wait, and they end, but it leaves them in the list
// of those. What is still computed makes new tasks, and these go to threads that are no more.
int tasks_during_the_destructor()
{
    std::atomic<int> leaves{0};
    {
        ThreadPool pool(3);
        divide(pool, leaves, 1);
        while (leaves < 2)
            std::this_thread::sleep_for(milliseconds(5));
    }
    printf("%d\n", leaves.load());
    fflush(stdout);
    auto pool = std::make_unique<ThreadPool>(4);
    std::this_thread::sleep_for(milliseconds(200));
    ThreadPool *running = pool.get();
    pool->schedule([running, &leaves] { divide(*running, leaves, 3); });
    std::this_thread::sleep_for(milliseconds(20));
    at("main");
    pool.reset();
    return 0;
}

// Batches of edges that clients send, on the way to the graph.
class BatchQueue {
public:
    void enqueue(std::string batch)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        batches_.push_back(std::move(batch));
        filled_.notify_one();
    }

    std::string dequeue()
    {
        printf("dequeue_batch: to get the lock\n");
        fflush(stdout);
        std::unique_lock<std::mutex> guard(mutex_);
        filled_.wait(guard, [this] { return !batches_.empty(); });
        std::string batch = std::move(batches_.front());
        batches_.pop_front();
        return batch;
    }

private:
    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::string> batches_;
};

void receive(int connection, BatchQueue *queue)
{
    char data[4096];
    while (true) {
        ssize_t count = read(connection, data, sizeof data);
        if (count <= 0)
            break;
        queue->enqueue(std::string(data, count));
    }
    close(connection);
}

void apply(BatchQueue *queue, std::map<std::string, int> *graph)
{
    while (true)
        ++(*graph)[queue->dequeue()];
}

void send_one_batch(int port)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = port;
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0)
        (void)!write(connection, "1 2 0.5", 7);
    close(connection);
}

// Healthy, as stingergraph/stinger#256: a server of a graph has no clients. The last that it says is that it takes the
// lock of its queue; it waits for something to be in there, and its main thread for connections.
int waits_for_batches()
{
    static BatchQueue queue;
    static std::map<std::string, int> graph;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(listener, reinterpret_cast<sockaddr *>(&address), length) != 0 || listen(listener, 16) != 0)
        return 1;
    getsockname(listener, reinterpret_cast<sockaddr *>(&address), &length);
    std::thread(apply, &queue, &graph).detach();
    std::thread(send_one_batch, address.sin_port).join();
    for (int number = 0;; ++number) {
        if (number == 1)
            at("main");
        int connection = accept(listener, nullptr, nullptr);
        if (connection < 0)
            return 1;
        std::thread(receive, connection, &queue).detach();
    }
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"tasks-during-the-destructor", tasks_during_the_destructor},
        {"waits-for-batches", waits_for_batches},
    };
    return programs.at(argv[1])();
}
