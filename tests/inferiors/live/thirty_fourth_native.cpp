// C++ programs that hang, and a healthy one, thirty-fourth set: `thirty_fourth_native NAME FOLDER`.
#include "program.h"

#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace {

using live::at;
using std::chrono::milliseconds;

class SpinLock {
public:
    void lock()
    {
        while (flag_.test_and_set(std::memory_order_acquire)) {
        }
    }
    void unlock() { flag_.clear(std::memory_order_release); }

private:
    std::atomic_flag flag_;
};

// Messages for a thread.
class OpenThread {
public:
    OpenThread() { }

    void send(const std::string &message)
    {
        lock_.lock();
        messages_.push_back(message);
        lock_.unlock();
    }

    bool take(std::string &message)
    {
        lock_.lock();
        bool some = !messages_.empty();
        if (some) {
            message = messages_.front();
            messages_.pop_front();
        }
        lock_.unlock();
        return some;
    }

private:
    std::deque<std::string> messages_;
    SpinLock lock_;
};

// Memory that has been used before.
__attribute__((noinline)) void *used_memory(size_t size)
{
    void *memory = malloc(size);
    memset(memory, 0xcd, size);
    return memory;
}

// As OpenMiniServer/openthread#2: a thread says stop to the main thread, by a queue with a spin lock whose flag is not
// set up.
int says_stop_to_its_thread()
{
    OpenThread *mailbox = new (used_memory(sizeof(OpenThread))) OpenThread;
    std::atomic<bool> begun { false };
    std::thread worker([&] {
        begun = true;
        mailbox->send("stop");
    });
    while (!begun)
        std::this_thread::sleep_for(milliseconds(1));
    at("main");
    worker.join();
    std::string message;
    printf("%d %s\n", mailbox->take(message), message.c_str());
    return 0;
}

// Gives a task to an idle worker, or keeps it until one is idle.
class ProactiveThreadpool {
public:
    using Task = std::function<void()>;

    explicit ProactiveThreadpool(int number)
    {
        for (int one = 0; one < number; ++one)
            workers_.emplace_back([this] { work(); });
    }

    void silent_async(Task task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        ++unfinished_;
        tasks_.push_back(std::move(task));
        worker_.notify_one();
    }

    bool exiting()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return exiting_;
    }

    void shutdown()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        exiting_ = true;
        worker_.notify_all();
        finished_.wait(guard, [this] { return unfinished_ == 0; });
        guard.unlock();
        for (std::thread &worker : workers_)
            worker.join();
        workers_.clear();
    }

private:
    void work()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (!exiting_) {
            if (tasks_.empty()) {
                worker_.wait(guard);
                continue;
            }
            Task task = std::move(tasks_.front());
            tasks_.pop_front();
            guard.unlock();
            task();
            guard.lock();
            if (--unfinished_ == 0)
                finished_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable worker_, finished_;
    std::deque<Task> tasks_;
    std::vector<std::thread> workers_;
    int unfinished_ = 0;
    bool exiting_ = false;
};

// As taskflow/taskflow#42: each task adds the next one, and the pool is shut down meanwhile.
int adds_tasks_in_tasks()
{
    ProactiveThreadpool pool(3);
    std::atomic<int> sum { 0 };
    std::function<void(int)> insert = [&](int left) {
        ++sum;
        if (left == 0)
            return;
        while (left == 1 && !pool.exiting())
            std::this_thread::sleep_for(milliseconds(1));
        pool.silent_async([&insert, left] { insert(left - 1); });
    };
    for (int chain = 0; chain < 3; ++chain)
        pool.silent_async([&insert] { insert(20); });
    while (sum < 3 * 20)
        std::this_thread::sleep_for(milliseconds(1));
    at("main");
    pool.shutdown();
    printf("%d tasks\n", sum.load());
    return 0;
}

class SpillCallback {
public:
    virtual ~SpillCallback() = default;
    virtual bool free_buffered_rows() = 0;
};

// Who can free memory is asked to when there is little of it.
class RowManager {
public:
    void add(SpillCallback *callback)
    {
        std::lock_guard<std::mutex> guard(callbacks_lock_);
        callbacks_.push_back(callback);
    }

    void release_buffers()
    {
        std::lock_guard<std::mutex> guard(callbacks_lock_);
        for (SpillCallback *callback : callbacks_)
            callback->free_buffered_rows();
    }

private:
    std::mutex callbacks_lock_;
    std::vector<SpillCallback *> callbacks_;
};

class SpillableRows : public SpillCallback {
public:
    explicit SpillableRows(RowManager &manager) : manager_(manager) { manager_.add(this); }

    void append(int row)
    {
        std::lock_guard<std::mutex> guard(rows_lock_);
        rows_.push_back(row);
    }

    bool free_buffered_rows() override
    {
        asked_ = true;
        std::lock_guard<std::mutex> guard(rows_lock_);
        spilled_.push_back(std::move(rows_));
        rows_.clear();
        return true;
    }

    // What was spilled and what was not become a stream, which can be spilled as well.
    size_t finish(SpillCallback *stream, const std::function<void()> &memory_is_low)
    {
        std::lock_guard<std::mutex> guard(rows_lock_);
        memory_is_low();
        while (!asked_)
            std::this_thread::sleep_for(milliseconds(1));
        at("main");
        manager_.add(stream);
        return spilled_.size();
    }

private:
    RowManager &manager_;
    std::mutex rows_lock_;
    std::vector<int> rows_;
    std::vector<std::vector<int>> spilled_;
    std::atomic<bool> asked_ { false };
};

class RowStream : public SpillCallback {
public:
    bool free_buffered_rows() override { return false; }
};

// As hpcc-systems/HPCC-Platform#3654: memory is low while rows that can be spilled become a stream.
int spills_its_rows()
{
    RowManager manager;
    SpillableRows rows(manager);
    RowStream stream;
    std::atomic<bool> low { false };
    for (int row = 0; row < 10000; ++row)
        rows.append(row);
    std::thread releaser([&] {
        while (!low)
            std::this_thread::sleep_for(milliseconds(1));
        manager.release_buffers();
    });
    printf("%zu\n", rows.finish(&stream, [&] { low = true; }));
    releaser.join();
    return 0;
}

struct Player {
    int socket;
    std::string room;
};

// As RSDKModding/RSDKv4-Decompilation#366, healthy: a server for games of several players has nothing to say until one
// comes.
int waits_for_its_players()
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(EPOLL_CLOEXEC);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address) || listen(listener, 8))
        return 1;
    epoll_event wanted = {};
    wanted.events = EPOLLIN;
    wanted.data.fd = listener;
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &wanted);
    std::map<int, Player> players;
    printf("Starting server...\n");
    fflush(stdout);
    at("main");
    while (true) {
        epoll_event events[16];
        int number = epoll_wait(poll, events, 16, -1);
        for (int one = 0; one < number; ++one) {
            if (events[one].data.fd == listener) {
                int player = accept(listener, nullptr, nullptr);
                players[player] = { player, "lobby" };
                wanted.data.fd = player;
                epoll_ctl(poll, EPOLL_CTL_ADD, player, &wanted);
                continue;
            }
            char text[512];
            ssize_t size = read(events[one].data.fd, text, sizeof text);
            if (size <= 0) {
                close(events[one].data.fd);
                players.erase(events[one].data.fd);
                continue;
            }
            for (auto &other : players)
                if (other.first != events[one].data.fd && write(other.first, text, size) < 0)
                    perror("write");
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    return live::run(argc, argv, {
        {"says-stop-to-its-thread", says_stop_to_its_thread},
        {"adds-tasks-in-tasks", adds_tasks_in_tasks},
        {"spills-its-rows", spills_its_rows},
        {"waits-for-its-players", waits_for_its_players},
    });
}
