// A C++ program that hangs, eighth set: `eighth_native NAME FOLDER`.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>
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

class Pool {
public:
    explicit Pool(int threads)
    {
        for (int number = 0; number < threads; ++number)
            threads_.emplace_back([this] { run(); });
    }

    ~Pool()
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            ended_ = true;
        }
        changed_.notify_one();
        for (auto &thread : threads_)
            thread.join();
    }

    void put(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push_back(std::move(task));
        changed_.notify_one();
    }

    // Until there is nothing to do and everybody waits for more.
    void drain()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        drained_.wait(guard, [this] { return tasks_.empty() && idle_ == threads_.size(); });
    }

private:
    void run()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        for (;;) {
            ++idle_;
            drained_.notify_one();
            changed_.wait(guard, [this] { return ended_ || !tasks_.empty(); });
            --idle_;
            if (tasks_.empty())
                return;
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            guard.unlock();
            task();
            guard.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_, drained_;
    std::deque<std::function<void()>> tasks_;
    std::vector<std::thread> threads_;
    size_t idle_ = 0;
    bool ended_ = false;
};

} // namespace

// The engine goes down: the pool of its tokenizer tells one of its four threads that it ends, and waits for all.
static void pool_tells_one()
{
    {
        Pool pool(4);
        for (int text = 0; text < 32; ++text)
            pool.put([text] { printf("%d tokens\n", text * 3); });
        pool.drain();
        at("main");
    }
    printf("ended\n");
}

int main(int, char **argv)
{
    const std::map<std::string, void (*)()> programs = {
        {"pool-tells-one", pool_tells_one},
    };
    folder = argv[2];
    programs.at(argv[1])();
}
