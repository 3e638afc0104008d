// C++ programs that hang, nineteenth set: `nineteenth_native NAME FOLDER`.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
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

// Its waiters say themselves, when they are told, whether what they wait for has come.
class Condition {
public:
    void wait(const std::function<bool()> &come)
    {
        Waiter waiter{come};
        {
            std::lock_guard<std::mutex> guard(mutex_);
            if (come())
                return;
            waiters_.push_back(&waiter);
        }
        std::unique_lock<std::mutex> guard(waiter.mutex);
        waiter.resumed_changed.wait(guard, [&] { return waiter.resumed; });
    }

    void notify_all()
    {
        std::deque<Waiter *> told;
        {
            std::lock_guard<std::mutex> guard(mutex_);
            told.swap(waiters_);
        }
        for (Waiter *waiter : told) {
            if (waiter->come()) {
                std::lock_guard<std::mutex> guard(waiter->mutex);
                waiter->resumed = true;
                waiter->resumed_changed.notify_one();
                continue;
            }
            note_that_it_was_too_early();
            std::lock_guard<std::mutex> guard(mutex_);
            waiters_.push_back(waiter);
        }
    }

    size_t waiting()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return waiters_.size();
    }

private:
    struct Waiter {
        std::function<bool()> come;
        bool resumed = false;
        std::mutex mutex;
        std::condition_variable resumed_changed;

        explicit Waiter(std::function<bool()> asked) : come(std::move(asked)) {}
    };

    void note_that_it_was_too_early()
    {
        std::ofstream(folder + "/early.txt", std::ios::app) << "told, and not yet ready\n";
        std::this_thread::sleep_for(milliseconds(500));
    }

    std::mutex mutex_;
    std::deque<Waiter *> waiters_;
};

// As jbaldwin/libcoro#398: who waits is taken off the list to be asked, and put back when it is not ready. The last
// notification comes in between; it finds nobody on the list, and there is none after it.
int put_back_after_the_last_notify()
{
    static Condition condition;
    static std::mutex mutex;
    static int done = 0;
    auto ended = [] {
        std::lock_guard<std::mutex> guard(mutex);
        return done;
    };
    auto finished = [ended] { return ended() == 2; };
    auto end_task = [] {
        {
            std::lock_guard<std::mutex> guard(mutex);
            ++done;
        }
        condition.notify_all();
    };
    std::thread first([&] {
        while (condition.waiting() == 0)
            std::this_thread::sleep_for(milliseconds(1));
        end_task();
    });
    std::thread second([&] {
        while (ended() == 0 || condition.waiting() > 0)
            std::this_thread::sleep_for(milliseconds(1));
        end_task(); // a moment after the first one
    });
    at("main");
    condition.wait(finished);
    first.join();
    second.join();
    printf("both are done\n");
    return 0;
}

// What a promise and its future share.
struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool satisfied = false;
    int value = 0;
    std::exception_ptr error;
    std::function<void(State &)> continuation;
};

class Future {
public:
    explicit Future(std::shared_ptr<State> state) : state_(std::move(state)) {}

    int get()
    {
        std::unique_lock<std::mutex> guard(state_->mutex);
        state_->changed.wait(guard, [this] { return state_->satisfied; });
        if (state_->error)
            std::rethrow_exception(state_->error);
        return state_->value;
    }

    Future then(std::function<int(int)> function)
    {
        auto output = std::make_shared<State>();
        std::lock_guard<std::mutex> guard(state_->mutex);
        state_->continuation = [output, function](State &input) {
            std::lock_guard<std::mutex> guard(output->mutex);
            output->value = function(input.value);
            output->satisfied = true;
            output->changed.notify_all();
        };
        return Future(output);
    }

private:
    std::shared_ptr<State> state_;
};

class Promise {
public:
    Promise() : state_(std::make_shared<State>()) {}
    Promise(Promise &&) = default;
    ~Promise()
    {
        if (state_)
            abandon();
    }

    Future future() { return Future(state_); }

    void set_value(int value)
    {
        std::unique_lock<std::mutex> guard(state_->mutex);
        state_->value = value;
        state_->satisfied = true;
        state_->changed.notify_all();
        auto continuation = std::move(state_->continuation);
        guard.unlock();
        if (continuation)
            continuation(*state_);
    }

private:
    // who waits for it gets an error
    void abandon()
    {
        std::lock_guard<std::mutex> guard(state_->mutex);
        if (state_->satisfied)
            return;
        state_->error = std::make_exception_ptr(std::runtime_error("the promise was abandoned"));
        state_->satisfied = true;
        state_->continuation = nullptr;
        state_->changed.notify_all();
    }

    std::shared_ptr<State> state_;
};

// Calls are completed by a thread of its own. One that the server has no answer for is dropped.
class Client {
public:
    Client()
    {
        std::thread([this] { complete(); }).detach();
    }

    Future call(int request)
    {
        Promise promise;
        Future future = promise.future();
        std::lock_guard<std::mutex> guard(mutex_);
        calls_.emplace_back(request, std::move(promise));
        called_.notify_one();
        return future;
    }

private:
    void complete()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            called_.wait(guard, [this] { return !calls_.empty(); });
            auto call = std::move(calls_.front());
            calls_.pop_front();
            guard.unlock();
            std::this_thread::sleep_for(milliseconds(20));
            if (call.first >= 0)
                call.second.set_value(call.first * 2);
        }
    }

    std::mutex mutex_;
    std::condition_variable called_;
    std::deque<std::pair<int, Promise>> calls_;
};

// As googleapis/google-cloud-cpp#13314: a promise that goes away without a value is an error for its own future. What
// was to be done with the value is not done then, and the future of that never gets anything.
int continuation_of_an_abandoned_promise()
{
    static auto *client = new Client;
    printf("%d\n", client->call(20).then([](int answer) { return answer + 2; }).get());
    try {
        client->call(-1).get();
    } catch (const std::runtime_error &error) {
        printf("%s\n", error.what());
    }
    fflush(stdout);
    at("main");
    return client->call(-1).then([](int answer) { return answer + 2; }).get();
}

// Who wants to write comes before those that read after it.
class ReadWriteLock {
public:
    void lock_read()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        readers_may_.wait(guard, [this] { return !written_ && queued_writers_ == 0; });
        ++readers_;
    }

    void unlock_read()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (--readers_ == 0)
            writers_may_.notify_one();
    }

    void lock_write()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        ++queued_writers_;
        writers_may_.wait(guard, [this] { return !written_ && readers_ == 0; });
        --queued_writers_;
        written_ = true;
    }

    void unlock_write()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        written_ = false;
        writers_may_.notify_one();
        readers_may_.notify_all();
    }

    bool wanted()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return queued_writers_ > 0;
    }

private:
    std::mutex mutex_;
    std::condition_variable readers_may_, writers_may_;
    int readers_ = 0, queued_writers_ = 0;
    bool written_ = false;
};

struct Catalog {
    ReadWriteLock lock;
    std::map<std::string, int> collections{{"users", 1}, {"orders", 2}};

    int find(const std::string &name)
    {
        lock.lock_read();
        int number = collections.count(name) ? collections[name] : 0;
        lock.unlock_read();
        return number;
    }

    void create(const std::string &name)
    {
        lock.lock_write();
        collections[name] = static_cast<int>(collections.size()) + 1;
        lock.unlock_write();
    }

    // `each` is called for the names, and they stay the same meanwhile
    void enumerate(const std::function<void(const std::string &)> &each)
    {
        lock.lock_read();
        for (const auto &collection : collections)
            each(collection.first);
        lock.unlock_read();
    }
};

// As arangodb/arangodb#14130: a thread reads, and reads once more within that. Another one has come in between which
// wants to write; it waits for the first read, and the second read waits for it.
int reads_again_behind_a_writer()
{
    static Catalog catalog;
    int total = 0;
    catalog.enumerate([&](const std::string &name) { total += catalog.find(name); });
    std::thread writer;
    catalog.enumerate([&](const std::string &name) {
        if (!writer.joinable()) {
            writer = std::thread([] { catalog.create("events"); });
            while (!catalog.lock.wanted())
                std::this_thread::sleep_for(milliseconds(1));
            at("main");
        }
        total += catalog.find(name);
    });
    writer.join();
    printf("%d\n", total);
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"put-back-after-the-last-notify", put_back_after_the_last_notify},
        {"continuation-of-an-abandoned-promise", continuation_of_an_abandoned_promise},
        {"reads-again-behind-a-writer", reads_again_behind_a_writer},
    };
    return programs.at(argv[1])();
}
