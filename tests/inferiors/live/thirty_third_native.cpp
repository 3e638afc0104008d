// C++ programs that hang, and a healthy one, thirty-third set: `thirty_third_native NAME FOLDER`.
#include "program.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <vector>

namespace {

using live::at;
using std::chrono::milliseconds;

void nap(int time)
{
    std::this_thread::sleep_for(milliseconds(time));
}

// The files of a client, for who asks over the network. A writer is let in before readers that come later.
class ClientState {
public:
    ClientState()
    {
        pthread_rwlockattr_t kind;
        pthread_rwlockattr_init(&kind);
        pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
        pthread_rwlock_init(&lock_, &kind);
        for (int number = 0; number < 32; ++number)
            shared_[number] = "file" + std::to_string(number);
    }

    void with_shared(const std::function<void(const std::map<int, std::string> &)> &look)
    {
        pthread_rwlock_rdlock(&lock_);
        look(shared_);
        pthread_rwlock_unlock(&lock_);
    }

    int revision()
    {
        pthread_rwlock_rdlock(&lock_);
        int number = revision_;
        pthread_rwlock_unlock(&lock_);
        return number;
    }

    void replace(int number, const std::string &name)
    {
        pthread_rwlock_wrlock(&lock_);
        shared_[number] = name;
        ++revision_;
        pthread_rwlock_unlock(&lock_);
    }

private:
    pthread_rwlock_t lock_;
    std::map<int, std::string> shared_;
    int revision_ = 0;
};

ClientState state;
std::atomic<int> listing{0}, refreshing{0};

// The core tells of its files now and then.
void refresh()
{
    for (int round = 0; round < 2; ++round) {
        while (listing.load() <= round)
            nap(1);
        refreshing.store(round + 1);
        state.replace(round, "renamed");
    }
}

std::string list_shared(int round)
{
    std::string text = "[";
    state.with_shared([&](const std::map<int, std::string> &shared) {
        for (const auto &entry : shared)
            text += "\"" + entry.second + "\",";
        if (round > 0) {
            listing.store(2);
            while (refreshing.load() < 2)
                nap(1);
            nap(300); // a long list
            at("main");
        }
        text += "\"revision\": " + std::to_string(state.revision());
    });
    listing.store(round + 1);
    return text + "]";
}

// As amule-org/amule#1096: who lists the files has the lock for reading, and asks for the revision, which takes it once
// more. A writer waits by then, and the lock lets no more readers in before that.
int reads_inside_a_read()
{
    std::thread core(refresh);
    for (int round = 0; round < 2; ++round) {
        printf("%zu\n", list_shared(round).size());
        while (state.revision() == round)
            nap(1);
    }
    core.join();
    return 0;
}

// Agents meet here, again and again.
class MeetingPoint {
public:
    explicit MeetingPoint(int agents) : agents_(agents), missing_(agents) {}

    void arrive()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        if (--missing_ == 0) {
            missing_ = agents_;
            all_here_.notify_all();
            return;
        }
        all_here_.wait(guard, [this] { return missing_ == agents_; });
    }

    int missing()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return missing_;
    }

private:
    std::mutex mutex_;
    std::condition_variable all_here_;
    int agents_, missing_;
};

std::atomic<bool> sampled{false};

// Of a profiler: a thread is stopped for a while, and its stack is written down.
void take_sample(int)
{
    sampled.store(true);
    timespec rest{0, 400 * 1000 * 1000};
    nanosleep(&rest, nullptr);
}

void second_agent(MeetingPoint &point, pthread_t first)
{
    for (int round = 0; round < 3; ++round) {
        if (round == 1) {
            while (point.missing() == 2)
                nap(1);
            pthread_kill(first, SIGPROF);
            while (!sampled.load())
                nap(1);
        } else if (round == 0) {
            nap(50);
        }
        point.arrive();
    }
}

// As agency-library/agency#108: who wakes at the meeting point looks at how many are missing. The other agent has gone
// on to the next meeting in the meantime, so that one is missing again, and it sleeps on.
int counts_down_again()
{
    MeetingPoint point(2);
    struct sigaction action = {};
    action.sa_handler = take_sample;
    sigaction(SIGPROF, &action, nullptr);
    pthread_t first = pthread_self();
    std::thread second([&] { second_agent(point, first); });
    point.arrive();
    nap(200); // the first meeting is over for both
    at("main");
    point.arrive();
    point.arrive();
    second.join();
    return 0;
}

// Who sends waits until the value was received. Who receives may wait for a deadline as well.
class Channel {
public:
    void send(int value)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        value_ = value;
        full_ = true;
        changed_.notify_all();
        changed_.wait(guard, [this] { return !full_; });
    }

    // Whether there was a value; else the deadline has passed.
    bool receive(int &value)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return full_ || expired_; });
        if (expired_) {
            expired_ = false;
            return false;
        }
        value = value_;
        full_ = false;
        changed_.notify_all();
        return true;
    }

    void expire()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        expired_ = true;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool full_ = false, expired_ = false;
    int value_ = 0;
};

// Looks whether an agent is still heard of. Each message of the agent puts the deadline off.
class Monitor {
public:
    Monitor() : watcher_([this] { watch(); }) {}

    void reset(int seconds, bool late)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (late) {
            resets_.expire();
            while (!handles_.load())
                nap(1);
            at("main");
        }
        resets_.send(seconds);
    }

    void join() { watcher_.join(); }

private:
    void watch()
    {
        while (true) {
            int seconds = 0;
            if (resets_.receive(seconds))
                timeout_ = seconds;
            else
                handle_failure();
        }
    }

    void handle_failure()
    {
        handles_.store(true);
        std::lock_guard<std::mutex> guard(mutex_);
        failed_ = true;
    }

    std::mutex mutex_;
    Channel resets_;
    std::atomic<bool> handles_{false};
    bool failed_ = false;
    int timeout_ = 0;
    std::thread watcher_;
};

// As sensu/sensu-go#1264: a monitor is reset, with its lock, by a value on a channel that has no room. The one thread
// that receives has seen the deadline pass at the same time, and wants the lock to say so.
int resets_its_monitor()
{
    Monitor monitor;
    for (int round = 0; round < 5; ++round)
        monitor.reset(10 + round, round == 4);
    monitor.join();
    return 0;
}

// The longest match before each place, looked for in the chain of those with the same beginning.
class Packer {
public:
    static constexpr size_t BLOCK = size_t(1) << 26, HEADS = 1 << 14, DEPTH = 4096, LONGEST = 258;

    Packer() : data_(BLOCK), heads_(HEADS), before_(BLOCK) {}

    void fill(uint64_t seed)
    {
        for (auto &byte : data_) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            byte = uint8_t(seed >> 60);
        }
    }

    size_t pack()
    {
        size_t written = 0;
        for (size_t place = 1; place + LONGEST < BLOCK;) {
            size_t length = longest_match(place);
            written += length > 3 ? 3 : 1;
            place += length > 3 ? length : 1;
        }
        return written;
    }

private:
    size_t longest_match(size_t place)
    {
        size_t head = (data_[place] << 8 ^ data_[place + 1] << 4 ^ data_[place + 2]) % HEADS, best = 0;
        size_t other = heads_[head];
        for (size_t depth = 0; other && depth < DEPTH; ++depth, other = before_[other]) {
            size_t length = 0;
            while (length < LONGEST && data_[other + length] == data_[place + length])
                ++length;
            best = length > best ? length : best;
        }
        before_[place] = uint32_t(heads_[head]);
        heads_[head] = uint32_t(place);
        return best;
    }

    std::vector<uint8_t> data_;
    std::vector<uint32_t> heads_, before_;
};

// Healthy, as foesmm/fomm#44: a package of four gigabytes is compressed by one thread, which takes hours.
int packs_with_one_thread()
{
    Packer packer;
    at("main");
    size_t written = 0;
    for (uint64_t block = 0; block < 64; ++block) {
        packer.fill(block + 1);
        written += packer.pack();
    }
    printf("%zu\n", written);
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    return live::run(argc, argv, {
        {"reads-inside-a-read", reads_inside_a_read},
        {"counts-down-again", counts_down_again},
        {"resets-its-monitor", resets_its_monitor},
        {"packs-with-one-thread", packs_with_one_thread},
    });
}
