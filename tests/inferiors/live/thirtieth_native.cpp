// C++ programs that hang, and healthy ones, thirtieth set: `thirtieth_native NAME FOLDER`.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <shared_mutex>
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

// Set once.
class Event {
public:
    void set()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        is_set_ = true;
        changed_.notify_all();
    }

    void wait()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return is_set_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_set_ = false;
};

// Of as many threads as there are processors for; tasks wait in a line.
class Pool {
public:
    explicit Pool(int threads)
    {
        for (int number = 0; number < threads; ++number)
            threads_.emplace_back([this] { work(); });
    }

    ~Pool()
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            ended_ = true;
        }
        filled_.notify_all();
        for (auto &thread : threads_)
            thread.join();
    }

    std::vector<std::future<void>> push(const std::vector<std::function<void()>> &tasks)
    {
        std::vector<std::future<void>> futures;
        std::lock_guard<std::mutex> guard(mutex_);
        for (auto &task : tasks) {
            tasks_.emplace_back(task);
            futures.push_back(tasks_.back().get_future());
        }
        filled_.notify_all();
        return futures;
    }

private:
    void work()
    {
        while (true) {
            std::packaged_task<void()> task;
            {
                std::unique_lock<std::mutex> guard(mutex_);
                filled_.wait(guard, [this] { return ended_ || !tasks_.empty(); });
                if (tasks_.empty())
                    return;
                task = std::move(tasks_.front());
                tasks_.pop_front();
            }
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::packaged_task<void()>> tasks_;
    std::vector<std::thread> threads_;
    bool ended_ = false;
};

// A picture in tiles.
class Image {
public:
    Image(Pool &pool, int rows, int columns) : pool_(pool), rows_(rows), columns_(columns) {}

    void blur() { for_each(rows_, [this](int row) { blur_row(row); }); }

private:
    void for_each(int count, const std::function<void(int)> &work)
    {
        std::vector<std::function<void()>> tasks;
        for (int number = 0; number < count; ++number)
            tasks.push_back([&work, number] { work(number); });
        for (auto &future : pool_.push(tasks))
            future.wait();
    }

    void blur_row(int row)
    {
        if (columns_ > 1 && ++in_rows_ == rows_)
            at("main");
        for_each(columns_, [this, row](int column) { sum_ += row * column; });
    }

    Pool &pool_;
    int rows_, columns_;
    std::atomic<int> in_rows_{0};
    std::atomic<long> sum_{0};
};

// As AcademySoftwareFoundation/OpenImageIO#1560: each task of a pool gives it tasks for its part, and waits for them.
// All threads of the pool wait, and the new tasks are in the line.
int waits_in_its_own_pool()
{
    Pool pool(2);
    Image(pool, 2, 8).blur();
    return 0;
}

// Values in segments, each with a lock, and a list of all keys by when they were used, which has one too.
class Cache {
public:
    using Load = std::function<std::string(int)>;

    std::string compute_if_absent(int key, const Load &load)
    {
        Segment &segment = segments_[key % SEGMENTS];
        std::lock_guard<std::mutex> guard(segment.mutex);
        auto found = segment.values.find(key);
        if (found == segment.values.end())
            found = segment.values.emplace(key, load(key)).first;
        promote(key);
        return found->second;
    }

    void invalidate_all(const std::function<void()> &begun)
    {
        std::lock_guard<std::mutex> guard(used_mutex_);
        used_.clear();
        begun();
        for (Segment &segment : segments_) {
            std::lock_guard<std::mutex> inner(segment.mutex);
            segment.values.clear();
        }
    }

private:
    static constexpr int SEGMENTS = 4;
    struct Segment {
        std::mutex mutex;
        std::map<int, std::string> values;
    };

    void promote(int key)
    {
        std::lock_guard<std::mutex> guard(used_mutex_);
        used_.remove(key);
        used_.push_front(key);
    }

    Segment segments_[SEGMENTS];
    std::mutex used_mutex_;
    std::list<int> used_;
};

// As elastic/elasticsearch#99326: who gets a value has the lock of its segment, and then that of the list. All is
// invalidated the other way round, while a value is loaded.
int invalidates_its_cache()
{
    Cache cache;
    Event loading, invalidating;
    auto block = [](int key) { return "block " + std::to_string(key); };
    for (int key = 0; key < 8; ++key)
        cache.compute_if_absent(key, block);
    std::thread searcher([&] {
        cache.compute_if_absent(11, [&](int key) {
            loading.set();
            invalidating.wait();
            return block(key);
        });
    });
    loading.wait();
    cache.invalidate_all([&] {
        at("main");
        invalidating.set();
    });
    searcher.join();
    return 0;
}

// Waits until some number of things are done.
class CountDown {
public:
    explicit CountDown(int count) : count_(count) {}

    void done()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (--count_ == 0)
            nothing_left_.notify_one();
    }

    void wait()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        ++waiting_;
        while (count_ > 0)
            nothing_left_.wait(guard);
        --waiting_;
    }

    int waiting()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return waiting_;
    }

private:
    std::mutex mutex_;
    std::condition_variable nothing_left_;
    int count_, waiting_ = 0;
};

// As softprops/waitout#2: a server ends when all requests are done, and its log and its metrics wait for that. One of
// those who wait is woken.
int wakes_one_of_its_waiters()
{
    CountDown requests(3);
    std::vector<std::thread> waiters;
    for (int number = 0; number < 3; ++number)
        waiters.emplace_back([&] { requests.wait(); });
    while (requests.waiting() < 3)
        std::this_thread::sleep_for(milliseconds(5));
    for (int number = 0; number < 3; ++number)
        requests.done();
    at("main");
    for (auto &waiter : waiters)
        waiter.join();
    return 0;
}

// A value that one reads or writes by a handle, which has the lock for as long as it lives.
template <class Value> class Synchronized {
public:
    template <class Lock> class Handle {
    public:
        Handle(Value &value, std::shared_mutex &mutex) : value_(value), lock_(mutex) {}
        Value *operator->() { return &value_; }

    private:
        Value &value_;
        Lock lock_;
    };
    using Reader = Handle<std::shared_lock<std::shared_mutex>>;
    using Writer = Handle<std::unique_lock<std::shared_mutex>>;

    Reader to_read() { return Reader(value_, mutex_); }
    Writer to_write() { return Writer(value_, mutex_); }

private:
    Value value_;
    std::shared_mutex mutex_;
};

struct Settings {
    int batch = 8;
    std::string model = "small";
};

void grow(Synchronized<Settings> &settings, int batch)
{
    auto now = settings.to_read();
    if (now->batch < batch) {
        at("main");
        settings.to_write()->batch = batch;
    }
}

// As SophistSolutions/Stroika#766: a function looks at the settings, and changes them while it has the handle by which
// it has looked.
int writes_what_it_reads()
{
    Synchronized<Settings> settings;
    settings.to_write()->model = "large";
    grow(settings, 8);
    grow(settings, 16);
    printf("%d\n", settings.to_read()->batch);
    return 0;
}

// Of a library: a thread for input and output, which ends when this is destroyed.
class IoThreadHolder {
public:
    void start()
    {
        if (pipe(words_) != 0)
            exit(2);
        thread_ = std::thread([this] { talk(); });
        while (task_ == 0)
            usleep(1000);
    }

    void send(char word)
    {
        if (write(words_[1], &word, 1) != 1)
            exit(2);
    }

    // As a system may do with all threads when the process ends.
    void end_without_a_word()
    {
        std::string task = "/proc/self/task/" + std::to_string(task_);
        pthread_cancel(thread_.native_handle());
        while (access(task.c_str(), F_OK) == 0)
            usleep(1000);
    }

    ~IoThreadHolder()
    {
        if (!thread_.joinable())
            return;
        send('q');
        at("main");
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return ended_; });
        guard.unlock();
        thread_.join();
    }

private:
    void talk()
    {
        char word;
        task_ = gettid();
        while (read(words_[0], &word, 1) == 1 && word != 'q')
            ++sent_;
        std::lock_guard<std::mutex> guard(mutex_);
        ended_ = true;
        changed_.notify_all();
    }

    int words_[2] = {-1, -1};
    std::thread thread_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false;
    std::atomic<int> sent_{0}, task_{0};
};

IoThreadHolder presence;

// As discord/discord-rpc#134: at the end of the process the threads are ended, and the objects after that. One of those
// waits for its thread to say that it has ended.
int holds_its_thread_to_the_end()
{
    presence.start();
    for (int number = 0; number < 4; ++number)
        presence.send('p');
    atexit([] { presence.end_without_a_word(); });
    return 0;
}

// One of the threads of a server, with its own part of all data. It never sleeps.
class Shard {
public:
    explicit Shard(int number) : number_(number)
    {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_) != 0)
            exit(2);
    }

    void run(std::vector<std::unique_ptr<Shard>> &all)
    {
        for (long turn = 0;; ++turn) {
            poll_network();
            for (auto &other : all)
                poll_messages(*other);
            run_timers();
            if (turn == 200000 && number_ == 0)
                at("main");
        }
    }

private:
    void poll_network()
    {
        pollfd wanted = {sockets_[0], POLLIN, 0};
        char byte;
        if (poll(&wanted, 1, 0) == 1 && read(sockets_[0], &byte, 1) == 1)
            ++requests_;
    }

    void poll_messages(Shard &other)
    {
        if (other.messages_.load(std::memory_order_acquire) > seen_)
            seen_ = other.messages_;
    }

    void run_timers()
    {
        auto now = std::chrono::steady_clock::now();
        if (now < next_)
            return;
        next_ = now + milliseconds(100);
        messages_.fetch_add(1, std::memory_order_release);
    }

    int number_, sockets_[2];
    long requests_ = 0, seen_ = 0;
    std::atomic<long> messages_{0};
    std::chrono::steady_clock::time_point next_{};
};

// Healthy, as scylladb/scylladb#590: a database without data and without requests needs all of its processors. Each
// shard asks the network and the other shards for something to do, and does not sleep.
int shards_poll()
{
    std::vector<std::unique_ptr<Shard>> shards;
    for (int number = 0; number < 2; ++number)
        shards.push_back(std::make_unique<Shard>(number));
    std::thread second([&] { shards[1]->run(shards); });
    shards[0]->run(shards);
    second.join();
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"waits-in-its-own-pool", waits_in_its_own_pool},
        {"invalidates-its-cache", invalidates_its_cache},
        {"wakes-one-of-its-waiters", wakes_one_of_its_waiters},
        {"writes-what-it-reads", writes_what_it_reads},
        {"holds-its-thread-to-the-end", holds_its_thread_to_the_end},
        {"shards-poll", shards_poll},
    };
    return programs.at(argv[1])();
}
