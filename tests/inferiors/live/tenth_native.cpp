// C++ programs that hang, and healthy ones, tenth set: `tenth_native NAME FOLDER`.
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <link.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <sys/time.h>
#include <sys/timerfd.h>
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

int work_for(double seconds)
{
    auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    unsigned hash = 2166136261;
    while (std::chrono::steady_clock::now() < until)
        for (unsigned number = 0; number < 20000; ++number)
            hash = (hash ^ number) * 16777619;
    return static_cast<int>(hash);
}

// Requests are collected into batches; a batch begins so many milliseconds after its first request.
class Batches {
public:
    Batches() : timer_(timerfd_create(CLOCK_MONOTONIC, 0)) { std::thread([this] { run(); }).detach(); }

    void add(long milliseconds)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        long mine = ++added_;
        itimerspec begin{};
        begin.it_value.tv_sec = milliseconds / 1000;
        begin.it_value.tv_nsec = milliseconds % 1000 * 1000000;
        timerfd_settime(timer_, 0, &begin, nullptr);
        changed_.wait(guard, [this, mine] { return done_ >= mine; });
    }

private:
    void run()
    {
        uint64_t times;
        while (read(timer_, &times, sizeof times) == sizeof times) {
            std::lock_guard<std::mutex> guard(mutex_);
            done_ = added_;
            changed_.notify_all();
        }
    }

    int timer_;
    std::mutex mutex_;
    std::condition_variable changed_;
    long added_ = 0, done_ = 0;
};

// The fourth request is urgent: its batch is to begin at once. A timer that is set to zero is switched off.
void timer_of_zero()
{
    auto *batches = new Batches;
    for (long milliseconds : {5, 5, 5, 0}) {
        if (milliseconds == 0)
            at("main");
        batches->add(milliseconds);
    }
}

// Healthy: each request waits for a second until its batch begins.
void timer_of_a_second()
{
    auto *batches = new Batches;
    at("main");
    for (;;)
        batches->add(1000);
}

// The plugins that have been loaded, and a look for them in the list of all modules.
std::mutex plugins_mutex;
std::atomic<bool> looks{false};

int look_at(dl_phdr_info *module, size_t, void *count)
{
    looks = true;
    std::lock_guard<std::mutex> guard(plugins_mutex);
    *static_cast<int *>(count) += std::string(module->dlpi_name).find("libresolv") != std::string::npos;
    return 0;
}

void load_plugin(std::atomic<bool> *loads)
{
    std::lock_guard<std::mutex> guard(plugins_mutex);
    *loads = true;
    while (!looks)
        std::this_thread::yield();
    dlopen("libresolv.so.2", RTLD_NOW);
}

// One thread loads a plugin with the mutex of the plugins, another one wants that mutex while it walks along the list.
void list_of_modules()
{
    static std::atomic<bool> loads{false};
    std::thread(load_plugin, &loads).detach();
    while (!loads)
        std::this_thread::yield();
    at("main");
    int count = 0;
    dl_iterate_phdr(look_at, &count);
}

// Stacks that a profiler takes, by a signal that comes again and again.
struct Sample {
    std::array<void *, 500> calls{};
    Sample *before = nullptr;
};

Sample *samples;

void take_sample(int)
{
    auto *sample = new Sample;
    sample->before = samples;
    samples = sample;
}

// The handler takes memory, also when it has interrupted a thread that does.
void sample_takes_memory()
{
    sigset_t profiled;
    sigemptyset(&profiled);
    sigaddset(&profiled, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &profiled, nullptr);
    std::thread([] { pause(); }).detach();
    pthread_sigmask(SIG_UNBLOCK, &profiled, nullptr);
    std::signal(SIGALRM, take_sample);
    at("main");
    itimerval often{{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &often, nullptr);
    std::vector<std::unique_ptr<std::string>> texts(64);
    for (size_t number = 0;; ++number)
        texts[number % texts.size()] = std::make_unique<std::string>(1500 + number % 4000, 't');
}

// A request, which whoever it belongs to may stop.
class Request {
public:
    explicit Request(std::stop_token stop) : callback_(std::in_place, std::move(stop), [this] { abort(); }) {}

    void finish()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        while (!stopping_)
            std::this_thread::yield();
        callback_.reset();
        finished_ = true;
    }

private:
    void abort()
    {
        stopping_ = true;
        std::lock_guard<std::mutex> guard(mutex_);
        finished_ = true;
    }

    std::mutex mutex_;
    std::atomic<bool> stopping_{false};
    bool finished_ = false;
    std::optional<std::stop_callback<std::function<void()>>> callback_;
};

// The client goes while its request ends: who ends it has the mutex, and waits for the callback that wants the mutex.
void stopped_while_it_ends()
{
    std::stop_source client;
    Request request(client.get_token());
    std::thread ends([&request] { request.finish(); });
    at("main");
    client.request_stop();
    ends.join();
}

// Healthy: three threads meet after each phase, and the first one needs 1.2 seconds for its own.
void phases_of_three()
{
    static std::barrier<> phase(3);
    auto phases = [](double seconds) {
        for (;;) {
            work_for(seconds);
            phase.arrive_and_wait();
        }
    };
    std::thread(phases, 1.2).detach();
    std::thread(phases, 0.01).detach();
    at("main");
    phases(0.01);
}

} // namespace

int main(int, char **argv)
{
    const std::map<std::string, void (*)()> programs = {
        {"timer-of-zero", timer_of_zero},
        {"timer-of-a-second", timer_of_a_second},
        {"list-of-modules", list_of_modules},
        {"sample-takes-memory", sample_takes_memory},
        {"stopped-while-it-ends", stopped_while_it_ends},
        {"phases-of-three", phases_of_three},
    };
    folder = argv[2];
    programs.at(argv[1])();
}
