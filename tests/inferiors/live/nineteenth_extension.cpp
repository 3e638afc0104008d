// Parts of engines in C++ for Python, nineteenth set: a database with threads, and a renderer with a runtime.
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace {

// Its threads do the tasks of all queries. They end with it, after the tasks that are left.
class TaskScheduler {
public:
    explicit TaskScheduler(int count)
    {
        for (int number = 0; number < count; ++number)
            threads_.emplace_back([this] { work(); });
    }

    ~TaskScheduler()
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            stopping_ = true;
            changed_.notify_all();
        }
        for (auto &thread : threads_)
            thread.join();
    }

    void schedule(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push_back(std::move(task));
        changed_.notify_one();
    }

private:
    void work()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            changed_.wait(guard, [this] { return stopping_ || !tasks_.empty(); });
            if (tasks_.empty())
                return;
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            guard.unlock();
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

struct Database {
    TaskScheduler scheduler{2};
};

// A relation of Python: a stream of rows that comes from there, over a database that may be its own.
struct Relation {
    Database *database;
    void (*release)(int);
    int stream;

    ~Relation()
    {
        auto free_stream = release;
        int number = stream;
        database->scheduler.schedule([free_stream, number] { free_stream(number); });
        delete database;
    }
};

// The runtime of a language of its own: begun when the library is loaded, it does all calls in its thread.
class Runtime {
public:
    Runtime()
    {
        std::thread([this] { serve(); }).detach();
    }

    int call(int width)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        width_ = width;
        asked_ = true;
        answered_ = false;
        changed_.notify_all();
        changed_.wait(guard, [this] { return answered_; });
        return pixels_;
    }

private:
    void serve()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (true) {
            changed_.wait(guard, [this] { return asked_; });
            asked_ = false;
            pixels_ = width_ * 32;
            answered_ = true;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool asked_ = false, answered_ = false;
    int width_ = 0, pixels_ = 0;
};

Runtime *runtime = new Runtime;

} // namespace

extern "C" {

void *make_relation(void (*release)(int), int stream) { return new Relation{new Database, release, stream}; }

void drop_relation(void *relation) { delete static_cast<Relation *>(relation); }

int render_app(int width) { return runtime->call(width); }
}
