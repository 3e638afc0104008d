// C++ programs that hang, and healthy ones: `second_native NAME FOLDER`.
#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore>
#include <shared_mutex>
#include <string>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;
static std::string folder;

static void at(const char *role)
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << getpid();
    rename(draft.c_str(), name.c_str());
}

class Pool {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> tasks;
    std::vector<std::thread> threads;
    void work()
    {
        for (;;) {
            std::unique_lock lock(mutex);
            changed.wait(lock, [this] { return !tasks.empty(); });
            auto task = std::move(tasks.front());
            tasks.pop_front();
            lock.unlock();
            task();
        }
    }

public:
    explicit Pool(int size)
    {
        for (int i = 0; i < size; ++i)
            threads.emplace_back([this] { work(); });
    }
    template <class Work> auto submit(Work work)
    {
        auto task = std::make_shared<std::packaged_task<decltype(work())()>>(std::move(work));
        auto result = task->get_future();
        {
            std::lock_guard lock(mutex);
            tasks.emplace_back([task] { (*task)(); });
        }
        changed.notify_one();
        return result;
    }
};

template <class Item> class Channel {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Item> items;
    size_t room;

public:
    explicit Channel(size_t room) : room(room) {}
    void put(Item item)
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return items.size() < room; });
        items.push_back(item);
        changed.notify_all();
    }
    Item take()
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return !items.empty(); });
        Item item = items.front();
        items.pop_front();
        changed.notify_all();
        return item;
    }
};

static double compute(int rounds)
{
    std::vector<double> row(4096, 1.01);
    double sum = 0;
    for (int round = 0; round < rounds; ++round)
        for (auto &value : row)
            sum += value *= 1.0000001;
    return sum;
}

// A reader of the block table upgrades to a writer without letting go.
static void reader_upgrades()
{
    std::shared_mutex table;
    std::shared_lock reading(table);
    at("main");
    std::unique_lock writing(table);
}

// The worker said that it was done before the main thread waited, and there is no predicate.
static void lost_wakeup()
{
    std::mutex mutex;
    std::condition_variable done;
    std::thread([&] { done.notify_one(); }).join();
    at("main");
    std::unique_lock lock(mutex);
    done.wait(lock);
}

struct Registry {
    Registry();
    static Registry &instance()
    {
        static Registry registry;
        return registry;
    }
};

// The constructor of a singleton waits for a thread that asks for the singleton.
Registry::Registry()
{
    std::thread(instance).join();
}

static void singleton()
{
    at("main");
    Registry::instance();
}

static std::once_flag handle_made;
static void make_handle()
{
    std::async(std::launch::async, [] { std::call_once(handle_made, [] {}); }).get();
}

static void call_once_in_task()
{
    at("main");
    std::call_once(handle_made, make_handle);
}

static void loads_plugin()
{
    at("main");
    dlopen(getenv("PLUGIN"), RTLD_NOW);
}

// Another thread is in the allocator's statistics while the process forks.
static void fork_with_mutex()
{
    static std::mutex statistics;
    std::binary_semaphore held(0);
    std::thread([&] {
        std::lock_guard lock(statistics);
        held.release();
        pause();
    }).detach();
    held.acquire();
    pid_t child = fork();
    if (child == 0) {
        at("child");
        std::lock_guard lock(statistics);
        _exit(0);
    }
    at("main");
    waitpid(child, nullptr, 0);
}

static void task_of_full_pool()
{
    Pool pool(2);
    std::vector<std::future<int>> outer;
    std::atomic<int> running = 0;
    for (int i = 0; i < 2; ++i)
        outer.push_back(pool.submit([&] {
            running++;
            while (running < 2)
                std::this_thread::yield();
            return pool.submit([] { return 1; }).get();
        }));
    at("main");
    outer[0].get();
}

struct Background {
    std::mutex mutex;
    std::condition_variable stop;
    bool stopped = false;
    std::thread thread;
    ~Background()
    {
        if (thread.joinable())
            thread.join(); // nobody set `stopped`
    }
};

static void static_destructor()
{
    static Background flusher;
    flusher.thread = std::thread([] {
        std::unique_lock lock(flusher.mutex);
        flusher.stop.wait(lock, [] { return flusher.stopped; });
    });
    at("main");
    exit(0);
}

// A barrier for three, and two workers.
static void barrier_too_large()
{
    static pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, nullptr, 3);
    std::thread one([] { pthread_barrier_wait(&barrier); }), two([] { pthread_barrier_wait(&barrier); });
    at("main");
    one.join();
    two.join();
}

// A process-shared mutex that is not robust; the process that had it was killed.
static void owner_was_killed()
{
    auto *mutex = static_cast<pthread_mutex_t *>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &shared);
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_lock(mutex);
        raise(SIGKILL);
    }
    waitpid(child, nullptr, 0);
    at("main");
    pthread_mutex_lock(mutex);
}

// Two stages with bounded queues to each other, and both put first.
static void full_channels()
{
    static Channel<int> forth(4), back(4);
    auto stage = [](Channel<int> &out, Channel<int> &in) {
        for (;;) {
            for (int i = 0; i < 8; ++i)
                out.put(i);
            in.take();
        }
    };
    std::thread one(stage, std::ref(forth), std::ref(back)), two(stage, std::ref(back), std::ref(forth));
    at("main");
    one.join();
    two.join();
}

static void atomic_nobody_sets()
{
    std::atomic<int> ready = 0;
    at("main");
    ready.wait(0);
}

// The callback of the cache's eviction takes the cache's lock again.
static void callback_under_lock()
{
    static std::mutex cache;
    std::function<void()> evicted = [] { std::lock_guard again(cache); };
    at("main");
    std::lock_guard lock(cache);
    evicted();
}

// The scheduler has the queue's mutex and wants the allocator's; a worker has them the other way round.
static void crossed_mutexes()
{
    static std::mutex queue, blocks;
    static std::atomic<int> both = 0;
    auto take = [](std::mutex &first, std::mutex &second) {
        std::lock_guard one(first);
        for (both++; both < 2;)
            std::this_thread::yield();
        std::lock_guard two(second);
    };
    std::thread scheduler(take, std::ref(queue), std::ref(blocks)), worker(take, std::ref(blocks), std::ref(queue));
    at("main");
    scheduler.join();
    worker.join();
}

static int listen_here()
{
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(server, reinterpret_cast<sockaddr *>(&address), sizeof address);
    listen(server, 8);
    return server;
}

// Healthy: a server with epoll, and a pool that has nothing to do.
static void epoll_server()
{
    Pool pool(4);
    pool.submit([] { return compute(10); }).get();
    int poll = epoll_create1(EPOLL_CLOEXEC), server = listen_here();
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = server;
    epoll_ctl(poll, EPOLL_CTL_ADD, server, &event);
    at("main");
    for (;;) {
        epoll_wait(poll, &event, 1, -1);
        close(accept(server, nullptr, nullptr));
    }
}

// Healthy: thread per connection, three clients that say nothing.
static void quiet_connections()
{
    int server = listen_here();
    sockaddr_in address;
    socklen_t size = sizeof address;
    getsockname(server, reinterpret_cast<sockaddr *>(&address), &size);
    for (int i = 0; i < 3; ++i) {
        int client = socket(AF_INET, SOCK_STREAM, 0);
        connect(client, reinterpret_cast<sockaddr *>(&address), size);
        std::thread([peer = accept(server, nullptr, nullptr)] {
            char byte;
            while (recv(peer, &byte, 1, 0) > 0)
                ;
        }).detach();
    }
    at("main");
    for (;;)
        close(accept(server, nullptr, nullptr));
}

// Healthy: batches of a pool that computes, the main thread waits for each.
static void pool_computes()
{
    Pool pool(3);
    at("main");
    for (;;) {
        std::vector<std::future<double>> parts;
        for (int i = 0; i < 6; ++i)
            parts.push_back(pool.submit([] { return compute(20000); }));
        for (auto &part : parts)
            part.get();
    }
}

// Healthy: stages with bounded queues, the last one is slow.
static void stages()
{
    static Channel<int> raw(4), done(4);
    std::thread([] {
        for (int i = 0;; ++i)
            raw.put(i);
    }).detach();
    std::thread([] {
        for (;;) {
            compute(50);
            done.put(raw.take());
        }
    }).detach();
    at("main");
    for (;;) {
        done.take();
        std::this_thread::sleep_for(20ms);
    }
}

// Healthy: threads that compute under one mutex in turns.
static void busy_mutex()
{
    static std::mutex mutex;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([] {
            for (;;) {
                {
                    std::lock_guard lock(mutex);
                    compute(2000);
                }
                compute(200);
            }
        });
    at("main");
    threads[0].join();
}

// Healthy: a daemon with a worker that polls its queue every 50 ms, a timer, and a main thread that waits for a signal.
static void polling_worker()
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    static std::atomic<bool> work = false;
    std::thread([] {
        while (!work)
            std::this_thread::sleep_for(50ms);
    }).detach();
    std::thread([] {
        static std::mutex mutex;
        static std::condition_variable tick;
        for (;;) {
            std::unique_lock lock(mutex);
            tick.wait_for(lock, 1s);
        }
    }).detach();
    at("main");
    int signal;
    sigwait(&set, &signal);
}

int main(int, char **argv)
{
    const std::map<std::string, void (*)()> programs = {
        {"reader-upgrades", reader_upgrades},
        {"lost-wakeup", lost_wakeup},
        {"singleton", singleton},
        {"call-once", call_once_in_task},
        {"loads-plugin", loads_plugin},
        {"fork-with-mutex", fork_with_mutex},
        {"task-of-full-pool", task_of_full_pool},
        {"static-destructor", static_destructor},
        {"barrier-too-large", barrier_too_large},
        {"owner-was-killed", owner_was_killed},
        {"full-channels", full_channels},
        {"atomic-wait", atomic_nobody_sets},
        {"callback-under-lock", callback_under_lock},
        {"crossed-mutexes", crossed_mutexes},
        {"epoll-server", epoll_server},
        {"quiet-connections", quiet_connections},
        {"pool-computes", pool_computes},
        {"stages", stages},
        {"busy-mutex", busy_mutex},
        {"polling-worker", polling_worker},
    };
    folder = argv[2];
    programs.at(argv[1])();
}
