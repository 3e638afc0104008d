// Parts of engines in C++ for Python, twenty-ninth set: modules that are told of changes, and kernels with a thread.
#include <atomic>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

extern "C" {
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
}

namespace {

// What a mutex is held for.
class Guard {
public:
    explicit Guard(pthread_mutex_t &mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
    ~Guard() { pthread_mutex_unlock(&mutex_); }

private:
    pthread_mutex_t &mutex_;
};

// Modules in Python, an option of theirs, and the thread that tells them of changes.
class ActiveModules {
public:
    int interval()
    {
        asked_ = true;
        while (changing_ && !changed_)
            sched_yield();
        Guard guard(lock_);
        return interval_;
    }

    void set_interval(int value)
    {
        Guard guard(lock_);
        interval_ = value;
    }

    // The map of the cluster has changed; each module is called with the lock held.
    void notify_all(void (*module)(int), int epoch)
    {
        module_ = module;
        epoch_ = epoch;
        changing_ = true;
        asked_ = false;
        pthread_t notifier;
        pthread_create(&notifier, nullptr, notify, this);
        pthread_detach(notifier);
    }

private:
    static void *notify(void *that)
    {
        auto &modules = *static_cast<ActiveModules *>(that);
        Guard guard(modules.lock_);
        modules.changed_ = true;
        while (!modules.asked_)
            sched_yield();
        int state = PyGILState_Ensure();
        modules.module_(modules.epoch_);
        PyGILState_Release(state);
        return nullptr;
    }

    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    int interval_ = 0, epoch_ = 0;
    void (*module_)(int) = nullptr;
    std::atomic<bool> asked_{false}, changing_{false}, changed_{false};
};

ActiveModules modules;

// A thread that multiplies, from the first product on and until the library is unloaded.
class Kernels {
public:
    ~Kernels()
    {
        if (!started_)
            return;
        {
            Guard guard(mutex_);
            stopped_ = true;
            pthread_cond_broadcast(&changed_);
        }
        pthread_join(thread_, nullptr);
    }

    double multiply(double left, double right)
    {
        Guard guard(mutex_);
        if (!started_)
            started_ = pthread_create(&thread_, nullptr, work, this) == 0;
        left_ = left;
        right_ = right;
        wanted_ = true;
        pthread_cond_broadcast(&changed_);
        while (wanted_)
            pthread_cond_wait(&changed_, &mutex_);
        return product_;
    }

private:
    static void *work(void *that)
    {
        static_cast<Kernels *>(that)->serve();
        release_buffers();
        return nullptr;
    }

    void serve()
    {
        Guard guard(mutex_);
        while (true) {
            while (!wanted_ && !stopped_)
                pthread_cond_wait(&changed_, &mutex_);
            if (stopped_)
                return;
            product_ = left_ * right_;
            wanted_ = false;
            pthread_cond_broadcast(&changed_);
        }
    }

    // The function that frees memory is that of the allocator, if the process has one.
    static void release_buffers()
    {
        if (void *allocator = dlopen("libjemalloc.so.2", RTLD_NOW | RTLD_NOLOAD))
            dlclose(allocator);
    }

    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
    pthread_t thread_{};
    double left_ = 0, right_ = 0, product_ = 0;
    bool started_ = false, wanted_ = false, stopped_ = false;
};

Kernels kernels;

} // namespace

extern "C" int get_interval(void)
{
    return modules.interval();
}

extern "C" void set_interval(int value)
{
    modules.set_interval(value);
}

extern "C" void notify_modules(void (*module)(int), int epoch)
{
    modules.notify_all(module, epoch);
}

extern "C" double multiply(double left, double right)
{
    return kernels.multiply(left, right);
}
