// Parts of an engine in C++ for Python, sixth set: a table in shared memory, a registry of threads, a transfer.
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <poll.h>
#include <sched.h>
#include <set>
#include <thread>
#include <unistd.h>

namespace {

// Odd while it is written: who reads tries again until it was even, and the same, before and after.
struct Table {
    std::atomic<unsigned> version;
    std::atomic<int> rows[4096];
};

struct Registry {
    std::mutex guard;
    std::set<int> threads;
    std::atomic<bool> stops{false};
    std::thread worker;
};

Registry &registry()
{
    static auto &only = *new Registry;
    return only;
}

struct Entry {
    Entry()
    {
        std::lock_guard<std::mutex> held(registry().guard);
        registry().threads.insert(gettid());
    }
    ~Entry()
    {
        std::lock_guard<std::mutex> held(registry().guard);
        registry().threads.erase(gettid());
    }
};

void work()
{
    static thread_local Entry entry;
    (void)&entry;
    while (!registry().stops) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

} // namespace

extern "C" void table_write(Table *table, int value, int dies)
{
    table->version.fetch_add(1);
    for (auto &row : table->rows) {
        row.store(value);
    }
    if (dies) {
        kill(getpid(), SIGKILL); // as for its memory
    }
    table->version.fetch_add(1);
}

extern "C" int table_read(Table *table)
{
    for (;;) {
        unsigned before = table->version.load();
        int value = table->rows[0].load();
        if (before % 2 == 0 && table->version.load() == before) {
            return value;
        }
        sched_yield();
    }
}

extern "C" void registry_start()
{
    registry().worker = std::thread(work);
}

// The worker ends, and its entry with it, which takes the lock.
extern "C" void registry_stop()
{
    std::lock_guard<std::mutex> held(registry().guard);
    registry().stops = true;
    registry().worker.join();
}

extern "C" int transfer_wait(int completion)
{
    pollfd wanted{completion, POLLIN, 0};
    char byte;
    while (poll(&wanted, 1, -1) <= 0) {
    }
    return static_cast<int>(read(completion, &byte, 1));
}
