// C++ programs that hang, and healthy ones, twelfth set: `twelfth_native NAME FOLDER`.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static std::string folder;

static void at(const char *role)
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << getpid();
    rename(draft.c_str(), name.c_str());
}

namespace {

using std::chrono::milliseconds;

int work_for(double seconds)
{
    auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    unsigned hash = 2166136261;
    while (std::chrono::steady_clock::now() < until)
        for (unsigned number = 0; number < 20000; ++number)
            hash = (hash ^ number) * 16777619;
    return static_cast<int>(hash);
}

// Connections that some threads answer. One that has something to read is told to one thread, and to none from then on
// until that thread says that it may be told again. Prompts end with a zero.
class Server {
public:
    explicit Server(bool always, double seconds) : always_(always), seconds_(seconds)
    {
        for (int number = 0; number < 2; ++number)
            std::thread([this] { run(); }).detach();
    }

    void add(int connection)
    {
        set(EPOLL_CTL_ADD, connection);
    }

private:
    void set(int how, int connection)
    {
        epoll_event event{};
        event.events = EPOLLIN | EPOLLONESHOT;
        event.data.fd = connection;
        epoll_ctl(poll_, how, connection, &event);
    }

    void run()
    {
        epoll_event event;
        for (;;)
            if (epoll_wait(poll_, &event, 1, -1) == 1)
                read_part(event.data.fd);
    }

    void read_part(int connection)
    {
        char part[512];
        ssize_t size = read(connection, part, sizeof part);
        if (size <= 0)
            return;
        bool whole = part[size - 1] == 0;
        if (whole) {
            work_for(seconds_);
            if (write(connection, "+", 1) < 0)
                return;
        }
        if (whole || always_)
            set(EPOLL_CTL_MOD, connection);
    }

    int poll_ = epoll_create1(EPOLL_CLOEXEC);
    bool always_;
    double seconds_;
};

void ask(int connection, size_t size)
{
    std::vector<char> prompt(size, 't');
    prompt.back() = 0;
    char answer;
    if (write(connection, prompt.data(), prompt.size()) > 0 && read(connection, &answer, 1) < 0)
        perror("answer");
}

// Requests of one client; the fourth one is long.
void asks_server(Server *server)
{
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    server->add(ends[0]);
    for (int number = 0;; ++number) {
        if (number == 3)
            at("main");
        ask(ends[1], number == 3 ? 3000 : 300);
    }
}

// A thread that has read a part of a prompt comes back without the word that the connection may be told again.
void connection_not_rearmed()
{
    asks_server(new Server(false, 0.01));
}

// Healthy: each part is followed by that word, and an answer takes 1.2 seconds.
void connection_rearmed()
{
    asks_server(new Server(true, 1.2));
}

int load(int shard, double seconds)
{
    work_for(seconds);
    return shard;
}

// Shards that another thread loads as long as there is memory for that; the others are loaded by who waits for them.
class Loader {
public:
    Loader(int beside, double seconds) : beside_(beside), seconds_(seconds) {}

    int wait(int shard)
    {
        auto how = shard < beside_ ? std::launch::async : std::launch::deferred;
        std::future<int> loaded = std::async(how, load, shard, seconds_);
        while (loaded.wait_for(milliseconds(0)) != std::future_status::ready) {
            ++ticks_;
            std::this_thread::sleep_for(milliseconds(10));
        }
        return loaded.get();
    }

private:
    int beside_;
    double seconds_;
    long ticks_ = 0;
};

void load_all(Loader loader)
{
    for (int shard = 0;; ++shard) {
        if (shard == 2)
            at("main");
        loader.wait(shard);
    }
}

// The main thread shows its progress until the third shard is there, and waits never: so nobody loads that.
void deferred_is_never_ready()
{
    load_all(Loader(2, 0.1));
}

// Healthy: another thread loads each shard.
void task_is_polled()
{
    load_all(Loader(1000000, 1.3));
}

// Blocks of the cache. Each function takes the mutex, also when it is called by one that has it.
class Blocks {
public:
    int take()
    {
        std::unique_lock<std::recursive_mutex> guard(mutex_);
        changed_.wait(guard, [this] { return !free_.empty(); });
        int block = free_.front();
        free_.pop_front();
        return block;
    }

    std::vector<int> take_some(size_t number)
    {
        std::lock_guard<std::recursive_mutex> guard(mutex_);
        std::vector<int> blocks;
        while (blocks.size() < number)
            blocks.push_back(take());
        return blocks;
    }

    void give(int block)
    {
        std::lock_guard<std::recursive_mutex> guard(mutex_);
        free_.push_back(block);
        changed_.notify_one();
    }

private:
    std::recursive_mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<int> free_{0, 1, 2, 3};
};

// A request wants six blocks, of which two are to come. The wait gives the mutex back once; it was taken twice.
void recursive_mutex_waits()
{
    auto *blocks = new Blocks;
    std::thread([blocks] {
        for (int block = 4;; ++block) {
            std::this_thread::sleep_for(milliseconds(300));
            blocks->give(block);
        }
    }).detach();
    at("main");
    blocks->take_some(6);
}

// Threads that make steps. At the end of the program, whoever ends it, all are to have ended theirs.
class Engine {
public:
    ~Engine()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return active_ == 0; });
    }

    void start(std::function<bool(int)> step)
    {
        std::thread([this, step = std::move(step)] {
            for (int number = 0; run(step, number); ++number)
                std::this_thread::sleep_for(milliseconds(50));
        }).detach();
    }

private:
    bool run(const std::function<bool(int)> &step, int number)
    {
        count(1);
        bool more = step(number);
        count(-1);
        return more;
    }

    void count(int more)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        active_ += more;
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    int active_ = 0;
};

bool check(int number)
{
    if (number == 4) {
        fprintf(stderr, "a tensor has another shape, the program ends\n");
        at("main");
        exit(1);
    }
    return true;
}

// A step finds an error and ends the program. What comes at its end waits for all steps, this one as well.
void exit_from_worker()
{
    static Engine engine;
    engine.start(check);
    for (;;)
        pause();
}

std::atomic<bool> measures{false};

// How fast this machine is, measured when it is first wanted.
int speed()
{
    static const int measured = [] {
        measures = true;
        return work_for(1.0);
    }();
    return measured;
}

// The child is forked while a thread of the parent measures: in the child the value is being made for ever.
void fork_while_static()
{
    std::thread measure(speed);
    while (!measures)
        std::this_thread::yield();
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        at("child");
        _exit(speed() == 0);
    }
    measure.join();
    at("main");
    waitpid(child, nullptr, 0);
}

} // namespace

int main(int, char **argv)
{
    const std::map<std::string, void (*)()> programs = {
        {"connection-not-rearmed", connection_not_rearmed},
        {"connection-rearmed", connection_rearmed},
        {"deferred-is-never-ready", deferred_is_never_ready},
        {"task-is-polled", task_is_polled},
        {"recursive-mutex-waits", recursive_mutex_waits},
        {"exit-from-worker", exit_from_worker},
        {"fork-while-static", fork_while_static},
    };
    folder = argv[2];
    programs.at(argv[1])();
}
