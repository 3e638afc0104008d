// C++ programs that hang, and healthy ones, third set: `third_native NAME FOLDER`.
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

static std::string folder;

static void at(const char *role)
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << getpid();
    rename(draft.c_str(), name.c_str());
}

static double compute(int rounds)
{
    std::vector<double> row(4096, 1.01);
    double sum = 0;
    for (int round = 0; round < rounds; ++round)
        for (auto &value : row)
            sum += value *= 1.0000001;
    return sum;
}

class SpinLock {
    std::atomic_flag taken;

public:
    void lock()
    {
        while (taken.test_and_set(std::memory_order_acquire))
            std::this_thread::yield();
    }
    void unlock() { taken.clear(std::memory_order_release); }
};

static SpinLock blocks; // guards the table of blocks
static std::mutex room_mutex;
static std::condition_variable room;
static bool has_room = false;

// Waits for a free block with the table's spin lock kept.
static void take_block(std::atomic<bool> &reached)
{
    std::lock_guard table(blocks);
    std::unique_lock lock(room_mutex);
    reached = true;
    room.wait(lock, [] { return has_room; });
}

// Needs the table's spin lock to give one back.
static void free_block()
{
    std::lock_guard table(blocks);
    std::lock_guard lock(room_mutex);
    has_room = true;
    room.notify_one();
}

static void spinlock_owner_waits()
{
    static std::atomic<bool> reached = false;
    std::thread request(take_block, std::ref(reached));
    while (!reached)
        std::this_thread::yield();
    std::thread finished(free_block);
    at("main");
    finished.join();
    request.join();
}

// Healthy: threads that take the spin lock in turns and compute.
static void spinlock_in_turns()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([] {
            for (;;) {
                {
                    std::lock_guard table(blocks);
                    compute(2);
                }
                compute(100);
            }
        });
    at("main");
    threads[0].join();
}

static std::mutex statistics;
static void print_statistics(int)
{
    std::lock_guard lock(statistics);
    fputs("statistics\n", stderr);
}

// The handler that prints the statistics interrupts their update.
static void handler_takes_mutex()
{
    signal(SIGUSR1, print_statistics);
    std::lock_guard lock(statistics);
    at("main");
    raise(SIGUSR1);
}

struct Value;
struct Cache {
    std::mutex mutex;
    std::map<int, std::unique_ptr<Value>> values;
    long freed = 0;
};
static Cache cache;

struct Value {
    ~Value() // counts itself as freed
    {
        std::lock_guard lock(cache.mutex);
        cache.freed++;
    }
};

// An evicted value's destructor takes the mutex of the cache that evicts it.
static void destructor_under_mutex()
{
    cache.values[7] = std::make_unique<Value>();
    at("main");
    std::lock_guard lock(cache.mutex);
    cache.values.erase(7);
}

// Healthy: the value leaves the cache under its mutex and dies after it.
static void destructor_after_mutex()
{
    auto request = [] {
        for (int key = 0;; key = (key + 1) % 8) {
            std::unique_ptr<Value> evicted;
            {
                std::lock_guard lock(cache.mutex);
                evicted = std::exchange(cache.values[key], std::make_unique<Value>());
                compute(100);
            }
            compute(50);
        }
    };
    std::thread one(request), two(request);
    at("main");
    one.join();
}

// One thread has the file's lock and wants the mutex, the other has them the other way round.
static void file_lock_and_mutex()
{
    static std::mutex index;
    static std::atomic<int> both = 0;
    std::string path = folder + "/cache";
    auto meet = [] {
        for (both++; both < 2;)
            std::this_thread::yield();
    };
    std::thread saves([&] {
        int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        flock(file, LOCK_EX);
        meet();
        std::lock_guard lock(index);
        flock(file, LOCK_UN);
    });
    std::thread loads([&] {
        std::lock_guard lock(index);
        meet();
        int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        flock(file, LOCK_EX);
    });
    at("main");
    saves.join();
    loads.join();
}

// The thread that should signal the end of the copy ended when it found nothing to copy.
static void eventfd_nobody_writes()
{
    int done = eventfd(0, EFD_CLOEXEC);
    std::vector<int> copies;
    std::thread([&] {
        if (copies.empty())
            return;
        eventfd_write(done, 1);
    }).join();
    at("main");
    eventfd_t value;
    eventfd_read(done, &value);
}

int main(int, char **argv)
{
    const std::map<std::string, void (*)()> programs = {
        {"spinlock-owner-waits", spinlock_owner_waits},
        {"spinlock-in-turns", spinlock_in_turns},
        {"handler-takes-mutex", handler_takes_mutex},
        {"destructor-under-mutex", destructor_under_mutex},
        {"destructor-after-mutex", destructor_after_mutex},
        {"file-lock-and-mutex", file_lock_and_mutex},
        {"eventfd-nobody-writes", eventfd_nobody_writes},
    };
    folder = argv[2];
    programs.at(argv[1])();
}
