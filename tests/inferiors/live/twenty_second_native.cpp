// C++ programs that hang, and healthy ones, twenty-second set: `twenty_second_native NAME FOLDER`.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sched.h>
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

// The master of a store: each segment that is mounted gets an answer, until its machine is frozen.
void run_master(int connection)
{
    char request[64];
    for (int count = 0; read(connection, request, sizeof request) > 0; ++count) {
        if (count == 4) {
            at("master");
            raise(SIGSTOP);
        }
        if (write(connection, "mounted", 8) < 0)
            return;
    }
}

// Of the store, in a process that has segments of memory.
class Client {
public:
    explicit Client(int connection) : connection_(connection) {}

    ~Client()
    {
        std::lock_guard<std::mutex> guard(mounted_mutex_);
        mounted_.clear();
    }

    void mount(int segment)
    {
        std::lock_guard<std::mutex> guard(mounted_mutex_);
        char answer[64];
        std::string request = "mount " + std::to_string(segment);
        if (write(connection_, request.c_str(), request.size() + 1) > 0 && read(connection_, answer, sizeof answer) > 0)
            mounted_.push_back(segment);
    }

private:
    int connection_;
    std::mutex mounted_mutex_;
    std::vector<int> mounted_;
};

// As kvcache-ai/Mooncake#2336: a segment is mounted by a call to the master, with the mutex of the segments. The master
// is frozen, and the destructor of the client wants the mutex.
void mounts_and_closes()
{
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    if (fork() == 0) {
        close(ends[0]);
        run_master(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    std::thread mounting;
    {
        Client client(ends[0]);
        std::atomic<int> begun{0};
        mounting = std::thread([&client, &begun] {
            for (int segment = 0; segment < 8; ++segment) {
                begun = segment;
                client.mount(segment);
            }
        });
        while (begun < 4)
            std::this_thread::sleep_for(milliseconds(1));
        std::this_thread::sleep_for(milliseconds(50));
        at("main");
    }
    mounting.join();
}

class Forkable {
public:
    virtual ~Forkable() = default;
    virtual void prepare() = 0;
    virtual void resume() = 0;
};

std::mutex forkables_mutex;
std::vector<Forkable *> forkables;

void manage_forkable(Forkable *one)
{
    std::lock_guard<std::mutex> guard(forkables_mutex);
    forkables.push_back(one);
}

void stop_managing_forkable(Forkable *one)
{
    std::lock_guard<std::mutex> guard(forkables_mutex);
    forkables.erase(std::remove(forkables.begin(), forkables.end(), one), forkables.end());
}

void prepare_fork()
{
    forkables_mutex.lock();
    for (Forkable *one : forkables)
        one->prepare();
}

void after_fork()
{
    for (Forkable *one : forkables)
        one->resume();
    forkables_mutex.unlock();
}

// A pool of threads, which are ended before a fork when they have done what is in the queue.
class EventPool : public Forkable {
public:
    EventPool()
    {
        manage_forkable(this);
        resume();
    }

    void run(std::function<void()> work)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        queue_.push_back(std::move(work));
        filled_.notify_one();
    }

    bool ended() const { return ended_; }

    void prepare() override
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            ended_ = true;
        }
        filled_.notify_all();
        for (auto &thread : threads_)
            thread.join();
        threads_.clear();
    }

    void resume() override
    {
        ended_ = false;
        for (int number = 0; number < 2; ++number)
            threads_.emplace_back([this] { loop(); });
    }

private:
    void loop()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            filled_.wait(guard, [this] { return ended_ || !queue_.empty(); });
            if (queue_.empty())
                return;
            auto work = std::move(queue_.front());
            queue_.pop_front();
            guard.unlock();
            work();
        }
    }

    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::function<void()>> queue_;
    std::vector<std::thread> threads_;
    std::atomic<bool> ended_{false};
};

// A poller of connections. It is to be told of forks too.
class Poller : public Forkable {
public:
    Poller() { manage_forkable(this); }
    ~Poller() override { stop_managing_forkable(this); }
    void prepare() override {}
    void resume() override {}
};

// As grpc/grpc#34442: before a fork the threads of the pool are waited for, with the lock of the list of those that are
// to be told. One of the threads makes a poller, which is put into the list.
void pool_before_fork()
{
    static EventPool pool;
    pthread_atfork(prepare_fork, after_fork, nullptr);
    for (int number = 0; number < 8; ++number)
        pool.run([] { Poller poller; });
    std::this_thread::sleep_for(milliseconds(50));
    std::atomic<bool> begun{false};
    pool.run([&begun] {
        begun = true;
        while (!pool.ended())
            std::this_thread::sleep_for(milliseconds(1));
        Poller poller; // for what has come meanwhile
    });
    while (!begun)
        std::this_thread::sleep_for(milliseconds(1));
    at("main");
    if (fork() == 0)
        _exit(0);
    pause();
}

std::mutex output_mutex;
std::atomic<bool> writes{false};

void log_line(const std::string &line, int repeated = 1)
{
    std::lock_guard<std::mutex> guard(output_mutex);
    std::ofstream file(folder + "/node.log", std::ios::app);
    for (int number = 0; number < repeated; ++number) {
        file << line << '\n';
        file.flush();
        writes = repeated > 1;
    }
}

void handle_termination(int)
{
    log_line("the node was told to end");
    _exit(0);
}

// As ros2/rclcpp#2982: the handler of SIGTERM writes to the log. The signal comes while its thread is in the log.
void logs_when_terminated()
{
    signal(SIGTERM, handle_termination);
    pthread_t spinner = pthread_self();
    std::thread supervisor([spinner] {
        while (!writes)
            std::this_thread::sleep_for(milliseconds(1));
        at("main");
        pthread_kill(spinner, SIGTERM);
        pause();
    });
    for (int number = 0; number < 10; ++number)
        log_line("a message was received");
    log_line("the state of a topic, and what is in its queue", 2000000);
    supervisor.join();
}

// A pool whose threads never sleep, so that the next kernel begins at once.
class SpinningPool {
public:
    explicit SpinningPool(int count)
    {
        for (int number = 0; number < count; ++number)
            threads_.emplace_back([this] { loop(); });
    }

    void parallel_for(std::function<void()> kernel)
    {
        kernel_ = std::move(kernel);
        left_ = static_cast<int>(threads_.size());
        ++generation_;
        while (left_ > 0)
            sched_yield();
    }

private:
    void loop()
    {
        for (int seen = 0;;) {
            while (generation_ == seen)
                sched_yield();
            ++seen;
            kernel_();
            --left_;
        }
    }

    std::function<void()> kernel_;
    std::atomic<int> generation_{0}, left_{0};
    std::vector<std::thread> threads_;
};

// Healthy, as kokkos/kokkos#6686: between two kernels the main thread does what is serial, which is to look for input
// and to write. The threads of the pool wait for the next kernel by running.
void serial_part()
{
    SpinningPool pool(2);
    std::atomic<long> total{0};
    for (int step = 0;; ++step) {
        pool.parallel_for([&total] {
            for (int number = 0; number < 100000; ++number)
                total.fetch_add(number % 7, std::memory_order_relaxed);
        });
        if (step == 3)
            at("main");
        for (int number = 0; number < 400; ++number)
            usleep(1000);
        std::ofstream(folder + "/step") << step << ' ' << total;
    }
}

} // namespace

int main(int, char **words)
{
    static const std::map<std::string, void (*)()> programs = {
        {"mounts-and-closes", mounts_and_closes},
        {"pool-before-fork", pool_before_fork},
        {"logs-when-terminated", logs_when_terminated},
        {"serial-part", serial_part},
    };
    folder = words[2];
    programs.at(words[1])();
    return 0;
}
