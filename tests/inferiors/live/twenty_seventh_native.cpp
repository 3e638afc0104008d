// C++ programs that hang, and healthy ones, twenty-seventh set: `twenty_seventh_native NAME FOLDER`.
#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <set>
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

using std::chrono::milliseconds;

void until(const std::atomic<bool> &flag)
{
    while (!flag)
        std::this_thread::sleep_for(milliseconds(1));
}

class Framework;

// Starts and stops bundles, beside the thread that asks for it.
class BundleThread {
public:
    BundleThread(Framework &framework, std::function<void()> operation)
        : framework_(framework), operation_(std::move(operation)), thread_([this] { run(); })
    {
    }
    void quit() { thread_.join(); }

private:
    void run();

    Framework &framework_;
    std::function<void()> operation_;
    std::thread thread_;
};

class Framework {
public:
    void start(const std::function<void()> &operation)
    {
        std::lock_guard<std::mutex> guard(threads_);
        busy_.push_back(std::make_unique<BundleThread>(*this, operation));
    }

    // a thread has done what it was asked for, and waits for more to do
    void idle(BundleThread *thread)
    {
        std::lock_guard<std::mutex> guard(threads_);
        idle_.insert(thread);
    }

    void stop()
    {
        std::lock_guard<std::mutex> guard(threads_);
        stopping = true;
        at("main");
        for (auto &thread : busy_)
            thread->quit();
    }

    std::atomic<bool> stopping{false};

private:
    std::mutex threads_;
    std::vector<std::unique_ptr<BundleThread>> busy_;
    std::set<BundleThread *> idle_;
};

void BundleThread::run()
{
    operation_();
    framework_.idle(this);
}

// As CppMicroServices/CppMicroServices#210: the framework is stopped while a bundle is started. It has the lock of the
// threads and joins them; the one that has started the bundle wants that lock to say that it is idle.
int framework_with_a_bundle()
{
    static Framework framework;
    framework.start([] { until(framework.stopping); });
    framework.stop();
    return 0;
}

// What a library for checkpoints knows of the threads of its process.
struct Checkpoints {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    int resuming = 0; // threads that have not ended what they do before they resume
    sem_t ready;

    void reset_after_fork()
    {
        pthread_mutex_init(&mutex, nullptr);
        pthread_cond_init(&changed, nullptr);
        sem_init(&ready, 0, 0);
    }

    void resumed()
    {
        pthread_mutex_lock(&mutex);
        --resuming;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }

    // the thread that takes checkpoints; it begins when all threads have resumed
    void take()
    {
        pthread_mutex_lock(&mutex);
        while (resuming > 0)
            pthread_cond_wait(&changed, &mutex);
        pthread_mutex_unlock(&mutex);
        sem_post(&ready);
        pause();
    }

    void start()
    {
        std::thread([this] { take(); }).detach();
    }

    void wait_until_started()
    {
        while (sem_wait(&ready) != 0) {
        }
    }
};

// As dmtcp/dmtcp#690: a process is forked when its threads resume after a checkpoint. The child has the count of those
// that have not, and none of them; its thread for checkpoints waits for them.
int forked_while_threads_resume()
{
    static auto *checkpoints = new Checkpoints;
    static std::atomic<bool> forked{false};
    checkpoints->reset_after_fork();
    checkpoints->resuming = 2;
    checkpoints->start();
    std::thread other([] {
        until(forked);
        checkpoints->resumed();
    });
    checkpoints->resumed();
    pid_t child = fork();
    if (child == 0) {
        checkpoints->reset_after_fork();
        checkpoints->start();
        at("child");
        checkpoints->wait_until_started();
        _exit(0);
    }
    forked = true;
    other.join();
    checkpoints->wait_until_started();
    at("main");
    waitpid(child, nullptr, 0);
    return 0;
}

// A command with pipes for what it reads and writes.
class Command {
public:
    explicit Command(std::vector<const char *> words, const char *role)
    {
        int input[2], output[2];
        if (pipe(input) != 0 || pipe(output) != 0)
            abort();
        pid_ = fork();
        if (pid_ == 0) {
            dup2(input[0], 0);
            dup2(output[1], 1);
            for (int end : {input[0], input[1], output[0], output[1]})
                close(end);
            if (role != nullptr)
                at(role);
            words.push_back(nullptr);
            execvp(words[0], const_cast<char *const *>(words.data()));
            _exit(127);
        }
        close(input[0]);
        close(output[1]);
        in_ = input[1];
        out_ = output[0];
    }

    int join()
    {
        close(in_);
        int status = 0;
        waitpid(pid_, &status, 0);
        return WEXITSTATUS(status);
    }

    // what it has written, after its end
    std::string output()
    {
        std::string all;
        char part[4096];
        for (ssize_t got; (got = read(out_, part, sizeof part)) > 0;)
            all.append(part, got);
        close(out_);
        return all;
    }

private:
    pid_t pid_;
    int in_, out_;
};

// As sheredom/subprocess.h#82: what a command writes can be read after its end. It writes more than a pipe holds.
int small_and_large_command()
{
    Command small({"echo", "ready"}, nullptr);
    int status = small.join();
    printf("%d %s", status, small.output().c_str());
    fflush(stdout);
    Command large({"dd", "if=/dev/zero", "bs=1k", "count=65", "status=none"}, "command");
    at("main");
    status = large.join();
    printf("%d %zu\n", status, large.output().size());
    return 0;
}

// Is set by one thread and unset by who has waited for it.
class Event {
public:
    void set()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        set_ = true;
        changed_.notify_one();
    }

    bool wait(milliseconds time)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        bool was = changed_.wait_for(guard, time, [this] { return set_; });
        set_ = false;
        return was;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool set_ = false;
};

// A condition made of what another system has. Who notifies waits until one has woken.
class Condition {
public:
    bool wait(milliseconds time)
    {
        {
            std::lock_guard<std::recursive_mutex> guard(mutex_);
            ++waiters;
        }
        bool woken = semaphore_.wait(time);
        --waiters;
        awake_.set();
        return woken;
    }

    // `switched`: between two of its instructions another thread runs, as may happen anywhere
    void notify_one(const std::function<void()> &switched)
    {
        std::lock_guard<std::recursive_mutex> guard(mutex_);
        if (!waiters.load())
            return;
        switched();
        int target = waiters.load() - 1;
        semaphore_.set();
        while (waiters > target)
            awake_.wait(milliseconds(1000));
    }

    std::atomic<int> waiters{0};

private:
    std::recursive_mutex mutex_;
    Event semaphore_, awake_;
};

// As meganz/mingw-std-threads#20: who notifies has seen a waiter, which gives up before it is counted a second time.
// There is none now, so that there would have to be one less than none.
int waiter_with_a_limit()
{
    static auto *condition = new Condition;
    static std::atomic<bool> seen{false}, gave_up{false};
    std::thread waiter([] {
        condition->wait(milliseconds(200));
        gave_up = true;
        while (true)
            condition->wait(milliseconds(1000));
    });
    while (condition->waiters == 0)
        std::this_thread::yield();
    condition->notify_one([] {
        until(gave_up);
        at("main");
    });
    waiter.join();
    return 0;
}

// Tests of an application share a home and an agent that stands for the real one.
struct Shared {
    std::mutex home, agent;
    std::atomic<int> begun{0};

    // both tests are in the midst of it
    void meet()
    {
        ++begun;
        while (begun < 2)
            std::this_thread::sleep_for(milliseconds(1));
    }

    void confirms_to_quit()
    {
        std::lock_guard<std::mutex> own_home(home);
        meet();
        std::lock_guard<std::mutex> own_agent(agent);
        printf("quit\n");
    }

    void approves()
    {
        std::lock_guard<std::mutex> own_agent(agent);
        meet();
        std::lock_guard<std::mutex> own_home(home);
        printf("approved\n");
    }
};

// As futuregene/future-os#252: a test has the lock of the home and wants that of the agent. Others take that of the
// agent first, and that of the home after it.
int tests_that_share_a_home()
{
    Shared shared;
    std::thread quits([&] { shared.confirms_to_quit(); }), approves([&] { shared.approves(); });
    while (shared.begun < 2)
        std::this_thread::sleep_for(milliseconds(1));
    at("main");
    quits.join();
    approves.join();
    return 0;
}

void serve_list(int listener)
{
    int client = accept(listener, nullptr, nullptr);
    at("server");
    for (int number = 0; number < 1000000; ++number) {
        std::string line = "{\"name\": \"homebrew " + std::to_string(number) + "\", \"icon\": \"icon0.png\"}\n";
        if (send(client, line.data(), line.size(), MSG_NOSIGNAL) < 0)
            break;
        std::this_thread::sleep_for(milliseconds(50)); // the line is slow
    }
    _exit(0);
}

// Healthy, as devnoname120/vhbb#22: an application fetches a list at its start, which takes minutes. Nothing is shown
// before it is there.
int list_fetched_at_the_start()
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener, reinterpret_cast<sockaddr *>(&address), size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size) != 0)
        return 1;
    if (fork() == 0)
        serve_list(listener);
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, reinterpret_cast<sockaddr *>(&address), size) != 0)
        return 1;
    std::string list;
    char part[4096];
    for (ssize_t got; (got = recv(connection, part, sizeof part, 0)) > 0;) {
        bool first = list.empty();
        list.append(part, got);
        if (first)
            at("main");
    }
    printf("%zu\n", list.size());
    return 0;
}

// What a pass of a compiler knows of a value in a loop.
struct Value {
    int loop;
    std::vector<int> operands;
    bool invariant = false;
};

class Module {
public:
    explicit Module(int count)
    {
        unsigned state = 7;
        for (int number = 0; number < count; ++number) {
            Value value{static_cast<int>(number % 9), {}};
            for (int operand = 0; operand < 3 && number > 0; ++operand) {
                state = state * 1664525u + 1013904223u;
                value.operands.push_back(static_cast<int>(state % number));
            }
            values_.push_back(value);
        }
    }

    // moves what does not change out of a loop, where nothing that may be the same is written in it
    int hoist()
    {
        int moved = 0;
        for (auto &value : values_) {
            bool all = std::all_of(value.operands.begin(), value.operands.end(),
                                   [&](int operand) { return values_[operand].loop <= value.loop; });
            bool alone = std::none_of(values_.begin(), values_.end(), [&](const Value &other) {
                return &other != &value && other.loop == value.loop && other.operands == value.operands;
            });
            value.invariant = all && alone;
            if (value.invariant && value.loop > 0) {
                --value.loop;
                ++moved;
            }
        }
        return moved;
    }

private:
    std::vector<Value> values_;
};

// Healthy, as llvm/llvm-project#78394: a compiler moves code out of deep loops, again and again, for three quarters of
// an hour. It says nothing before its end.
int passes_over_deep_loops()
{
    int moved = Module(2000).hoist();
    at("main");
    for (int function = 0; function < 100000; ++function) {
        Module module(20000);
        while (int count = module.hoist())
            moved += count;
    }
    printf("%d\n", moved);
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"stops-the-framework", framework_with_a_bundle},
        {"forks-while-resuming", forked_while_threads_resume},
        {"joins-its-command", small_and_large_command},
        {"notifies-one-of-them", waiter_with_a_limit},
        {"quits-when-confirmed", tests_that_share_a_home},
        {"starts-with-its-list", list_fetched_at_the_start},
        {"hoists-out-of-loops", passes_over_deep_loops},
    };
    return programs.at(argv[1])();
}
