// C++ programs that hang, twentieth set: `twentieth_native NAME FOLDER BACKEND`.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static std::string folder, backend;

static void at(const char *role, pid_t pid = getpid())
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << pid;
    rename(draft.c_str(), name.c_str());
}

namespace {

using std::chrono::milliseconds;

enum class Status { DOWNLOADING, DOWNLOADED, LOADED };

// A model that the router of a server knows. While it is downloaded, a thread looks after that.
struct Model {
    std::string name;
    Status status = Status::LOADED;
    std::thread monitoring;
};

class Models {
public:
    void add(const std::string &name)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        models_[name].name = name;
    }

    void download(const std::string &name)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        Model &model = models_[name];
        model.name = name;
        model.status = Status::DOWNLOADING;
        model.monitoring = std::thread([this, name] { monitor(name); });
    }

    Status status(const std::string &name)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return models_.at(name).status;
    }

    // What is there now; a download that has ended is a model like the others.
    void load_models()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        ++listings_;
        for (auto item = models_.begin(); item != models_.end();) {
            if (item->second.status != Status::DOWNLOADED) {
                ++item;
                continue;
            }
            item->second.monitoring.join();
            item = models_.erase(item);
        }
    }

private:
    void monitor(const std::string &name)
    {
        {
            std::ofstream file(folder + "/" + name + ".gguf");
            for (int part = 0; part < 20; ++part) {
                file << std::string(4096, 'w');
                std::this_thread::sleep_for(milliseconds(10));
            }
        }
        int seen;
        {
            std::lock_guard<std::mutex> guard(mutex_);
            models_.at(name).status = Status::DOWNLOADED;
            seen = listings_;
        }
        while (listings_ == seen)
            std::this_thread::sleep_for(milliseconds(1));
        at("main");
        std::lock_guard<std::mutex> guard(mutex_);
        stopping_.erase(name);
    }

    std::mutex mutex_;
    std::map<std::string, Model> models_;
    std::set<std::string> stopping_;
    std::atomic<int> listings_{0};
};

// As ggml-org/llama.cpp#25358: models are listed again after a download. The thread of the download is joined for that
// under the lock of the models, and it wants this lock for the last thing that it does.
int removes_a_download()
{
    static auto *models = new Models;
    models->add("a-small-model");
    models->load_models();
    models->download("a-large-model");
    while (models->status("a-large-model") != Status::DOWNLOADED)
        std::this_thread::sleep_for(milliseconds(5));
    models->load_models();
    return 0;
}

// Something that happens once.
class Notification {
public:
    void notify()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        notified_ = true;
        changed_.notify_all();
    }

    void wait()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (!notified_)
            changed_.wait(guard);
    }

    bool wait_with_timeout(milliseconds timeout)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        return changed_.wait_for(guard, timeout) == std::cv_status::no_timeout;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool notified_ = false;
};

// One thread that does what it is given.
class Executor {
public:
    Executor()
    {
        std::thread([this] { work(); }).detach();
    }

    void schedule(std::function<void()> closure)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        closures_.push_back(std::move(closure));
        filled_.notify_one();
    }

private:
    void work()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            filled_.wait(guard, [this] { return !closures_.empty(); });
            auto closure = std::move(closures_.front());
            closures_.pop_front();
            guard.unlock();
            closure();
        }
    }

    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::function<void()>> closures_;
};

// As tensorflow/tensorflow#4064: a step has ended before it is waited for with a timeout. That wait does not look
// whether there was a notification; it ends by a later one only, or by the time, after which it is tried again.
int notification_of_a_step()
{
    static auto *executor = new Executor;
    static Notification step, summary;
    std::vector<double> weights(256, 1.0);
    executor->schedule([&] {
        for (double &weight : weights)
            weight *= 0.99;
        step.notify();
    });
    executor->schedule([] { summary.notify(); });
    summary.wait();
    at("main");
    while (!step.wait_with_timeout(milliseconds(2000)))
        printf("the step takes long\n");
    return 0;
}

// What the devices are used by. It is set up when it is first wanted, and loads what it needs.
class Runtime {
public:
    int device_count()
    {
        ++callers_;
        std::lock_guard<std::mutex> guard(mutex_);
        return initialize();
    }

    int allocate(int size)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        while (callers_ == 0)
            std::this_thread::sleep_for(milliseconds(1));
        at("main");
        return initialize() * size;
    }

private:
    int initialize()
    {
        if (driver_ == nullptr)
            driver_ = dlopen("libresolv.so.2", RTLD_NOW);
        return driver_ == nullptr ? 0 : 2;
    }

    std::mutex mutex_;
    std::atomic<int> callers_{0};
    void *driver_ = nullptr;
};

Runtime runtime;

// As triton-inference-server/core#156: models are loaded by several threads. One loads a library, which asks the runtime
// as it is loaded; another one is in the runtime, which loads a library as well.
int backend_and_runtime()
{
    std::thread allocates([] { printf("%d\n", runtime.allocate(64)); });
    std::thread loads([] { printf("%p\n", dlopen(backend.c_str(), RTLD_NOW)); });
    allocates.join();
    loads.join();
    return 0;
}

// Tasks in the order in which they come.
class Stream {
public:
    Stream()
    {
        std::thread([this] { executor(); }).detach();
    }

    void enqueue(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push_back(std::move(task));
        filled_.notify_one();
    }

private:
    void executor()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            filled_.wait(guard, [this] { return !tasks_.empty(); });
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            guard.unlock();
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::function<void()>> tasks_;
};

class Scheduler {
public:
    void enqueue(int stream, const std::function<void()> &task)
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            ++active_;
        }
        streams_[stream].enqueue([this, task] {
            task();
            std::lock_guard<std::mutex> guard(mutex_);
            --active_;
            completion_.notify_all();
        });
    }

    // until there is a task less than now
    void wait_for_one()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        int now = active_;
        if (now > 1)
            completion_.wait(guard, [this, now] { return active_ < now; });
    }

    void synchronize()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        completion_.wait(guard, [this] { return active_ == 0; });
    }

private:
    std::mutex mutex_;
    std::condition_variable completion_;
    int active_ = 0;
    Stream streams_[2];
};

class Allocator {
public:
    explicit Allocator(Scheduler &scheduler, int limit) : scheduler_(scheduler), limit_(limit) {}

    std::vector<float> malloc_or_wait(int size)
    {
        if (used_ + size > limit_)
            scheduler_.wait_for_one();
        used_ += size;
        return std::vector<float>(size);
    }

    void free(std::vector<float> &buffer)
    {
        used_ -= int(buffer.size());
        buffer.clear();
    }

    int used() const { return used_; }

private:
    Scheduler &scheduler_;
    const int limit_;
    std::atomic<int> used_{0};
};

// As ml-explore/mlx#1976: whoever wants memory beyond the limit waits until one of the tasks has ended. The tasks of
// both streams want some, and each waits for the other.
int memory_limit()
{
    static auto *scheduler = new Scheduler;
    static Allocator allocator(*scheduler, 4096);
    static std::atomic<int> ready{0};
    auto matmul = [](bool both) {
        auto product = allocator.malloc_or_wait(2048);
        if (both) {
            ++ready;
            while (ready < 2)
                std::this_thread::sleep_for(milliseconds(1));
        }
        auto sums = allocator.malloc_or_wait(1024);
        for (size_t index = 0; index < product.size(); ++index)
            sums[index / 2] += product[index] * 2;
        allocator.free(sums);
        allocator.free(product);
    };
    scheduler->enqueue(0, [&] { matmul(false); });
    scheduler->synchronize();
    for (int stream = 0; stream < 2; ++stream)
        scheduler->enqueue(stream, [&] { matmul(true); });
    while (ready < 2)
        std::this_thread::sleep_for(milliseconds(1));
    at("main");
    scheduler->synchronize();
    return 0;
}

} // namespace

extern "C" int runtime_device_count()
{
    return runtime.device_count();
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    folder = argv[2];
    backend = argv[3];
    const std::map<std::string, int (*)()> programs = {
        {"removes-a-download", removes_a_download},
        {"notification-of-a-step", notification_of_a_step},
        {"backend-and-runtime", backend_and_runtime},
        {"memory-limit", memory_limit},
    };
    return programs.at(argv[1])();
}
