// C++ programs that hang, and a healthy one, ninth set: `ninth_native NAME FOLDER`.
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>

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

// The prefetch of a layer tells when the cache has room. What std::async gave waits at the end of its block.
void future_waits_in_destructor()
{
    std::promise<int> room;
    std::shared_future<int> told = room.get_future().share();
    at("main");
    {
        auto prefetch = std::async(std::launch::async, [told] { return work_for(0.01) + told.get(); });
    }
    room.set_value(16);
}

// Tokens for the thread that writes them. Nobody ends that thread.
class Writer {
public:
    Writer() { std::thread([this] { run(); }).detach(); }

    void put(int token)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tokens_.push_back(token);
        changed_.notify_one();
    }

    void drain()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        drained_.wait(guard, [this] { return tokens_.empty() && idle_; });
    }

private:
    void run()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        for (;;) {
            idle_ = tokens_.empty();
            drained_.notify_one();
            changed_.wait(guard, [this] { return !tokens_.empty(); });
            printf("token %d\n", tokens_.front());
            tokens_.pop_front();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_, drained_;
    std::deque<int> tokens_;
    bool idle_ = false;
};

// At the end of the program the C library destroys the condition that the writer waits for, and waits for the writer.
void condition_destroyed_at_exit()
{
    static Writer writer;
    for (int token = 0; token < 16; ++token)
        writer.put(token);
    writer.drain();
    at("main");
}

// Weights that are replaced as soon as nobody reads the old ones any more: readers say when they enter and leave.
class Weights {
public:
    void enter(int reader) { entered_[reader] = version_.load(); }
    void leave(int reader) { entered_[reader] = 0; }
    bool is_read_by(int reader) const { return entered_[reader] != 0; }

    void replace()
    {
        long now = ++version_;
        for (auto &reader : entered_)
            while (reader != 0 && reader < now)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::lock_guard<std::mutex> guard(mutex_);
        ready_ = now;
        changed_.notify_all();
    }

    void wait_for(long version)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this, version] { return ready_ >= version; });
    }

private:
    std::atomic<long> version_{1};
    std::array<std::atomic<long>, 4> entered_{};
    std::mutex mutex_;
    std::condition_variable changed_;
    long ready_ = 1;
};

Weights weights;

void serve(int reader, long wanted, double seconds)
{
    for (;;) {
        weights.enter(reader);
        weights.wait_for(wanted);
        work_for(seconds);
        weights.leave(reader);
    }
}

// A request wants the weights of version 2, and its thread waits for them where it keeps the old ones from being left.
void epoch_not_left()
{
    std::thread(serve, 0, 2, 0.01).detach();
    while (!weights.is_read_by(0))
        std::this_thread::yield();
    at("main");
    weights.replace();
}

// Healthy: the requests take 1.1 seconds and the weights are replaced after each.
void epoch_is_left()
{
    std::thread(serve, 0, 1, 1.1).detach();
    at("main");
    for (;;)
        weights.replace();
}

} // namespace

int main(int, char **argv)
{
    const std::map<std::string, void (*)()> programs = {
        {"future-waits-in-destructor", future_waits_in_destructor},
        {"condition-destroyed-at-exit", condition_destroyed_at_exit},
        {"epoch-not-left", epoch_not_left},
        {"epoch-is-left", epoch_is_left},
    };
    folder = argv[2];
    programs.at(argv[1])();
}
