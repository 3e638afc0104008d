// Parts of engines in C++ for Python, twenty-ninth set: modules that are told of changes, and kernels with a thread.
#include <atomic>
#include <condition_variable>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <string>
#include <thread>

extern "C" {
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
}

namespace {

// Modules in Python, their options, and the thread that tells them of changes.
class ActiveModules {
public:
    int get_option(const char *name)
    {
        asked_ = true;
        while (changing_ && !changed_)
            std::this_thread::yield();
        std::lock_guard<std::mutex> guard(lock_);
        return options_[name];
    }

    void set_option(const char *name, int value)
    {
        std::lock_guard<std::mutex> guard(lock_);
        options_[name] = value;
    }

    // The map of the cluster has changed; each module is called with the lock held.
    void notify_all(void (*module)(int), int epoch)
    {
        changing_ = true;
        asked_ = false;
        notifier_ = std::thread([this, module, epoch] {
            std::lock_guard<std::mutex> guard(lock_);
            changed_ = true;
            while (!asked_)
                std::this_thread::yield();
            int state = PyGILState_Ensure();
            module(epoch);
            PyGILState_Release(state);
        });
        notifier_.detach();
    }

private:
    std::mutex lock_;
    std::map<std::string, int> options_;
    std::thread notifier_;
    std::atomic<bool> asked_{false}, changing_{false}, changed_{false};
};

ActiveModules *modules()
{
    static auto *made = new ActiveModules;
    return made;
}

// A thread that multiplies, from the first product on and until the library is unloaded.
class Kernels {
public:
    ~Kernels()
    {
        if (!thread_.joinable())
            return;
        {
            std::lock_guard<std::mutex> guard(mutex_);
            stopped_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

    double multiply(double left, double right)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        if (!thread_.joinable())
            thread_ = std::thread([this] { work(); });
        left_ = left;
        right_ = right;
        wanted_ = true;
        changed_.notify_all();
        changed_.wait(guard, [this] { return !wanted_; });
        return product_;
    }

private:
    void work()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (true) {
            changed_.wait(guard, [this] { return wanted_ || stopped_; });
            if (stopped_)
                break;
            product_ = left_ * right_;
            wanted_ = false;
            changed_.notify_all();
        }
        guard.unlock();
        release_buffers();
    }

    // The function that frees memory is that of the allocator, if the process has one.
    static void release_buffers()
    {
        if (void *allocator = dlopen("libjemalloc.so.2", RTLD_NOW | RTLD_NOLOAD))
            dlclose(allocator);
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::thread thread_;
    double left_ = 0, right_ = 0, product_ = 0;
    bool wanted_ = false, stopped_ = false;
};

Kernels kernels;

} // namespace

extern "C" int get_option(const char *name)
{
    return modules()->get_option(name);
}

extern "C" void set_option(const char *name, int value)
{
    modules()->set_option(name, value);
}

extern "C" void notify_modules(void (*module)(int), int epoch)
{
    modules()->notify_all(module, epoch);
}

extern "C" double multiply(double left, double right)
{
    return kernels.multiply(left, right);
}
