// A part of engines in C++ for Python, sixteenth set: calls of Python, and a tokenizer.
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

extern "C" {
void *PyInterpreterState_Get(void);
void *PyThreadState_New(void *interpreter);
void PyEval_AcquireThread(void *state);
void *PyEval_SaveThread(void);
}

namespace {

thread_local void *known_state = nullptr;

// The lock of the interpreter, for a thread that has not got it. What is not known here has none.
class ScopedAcquire {
public:
    ScopedAcquire()
    {
        if (known_state == nullptr) {
            known_state = PyThreadState_New(PyInterpreterState_Get());
            PyEval_AcquireThread(known_state);
            mine_ = true;
        }
    }

    ~ScopedAcquire()
    {
        if (mine_)
            PyEval_SaveThread();
    }

private:
    bool mine_ = false;
};

// Its threads are started when they are first wanted.
class Pool {
public:
    Pool()
    {
        for (int number = 0; number < 2; ++number)
            std::thread([this] { work(); }).detach();
    }

    void run(int count, const std::function<void(int)> &task)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        int left = count;
        for (int number = 0; number < count; ++number)
            tasks_.push_back([&, number] {
                task(number);
                std::lock_guard<std::mutex> inner(mutex_);
                --left;
                done_.notify_all();
            });
        filled_.notify_all();
        done_.wait(guard, [&] { return left == 0; });
    }

private:
    void work()
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
    std::condition_variable filled_, done_;
    std::deque<std::function<void()>> tasks_;
};

Pool &pool()
{
    static auto *only = new Pool;
    return *only;
}

} // namespace

extern "C" void call_back(void (*function)())
{
    ScopedAcquire acquire;
    function();
}

extern "C" int encode_batch(const char *const *texts, int count, int *lengths)
{
    pool().run(count, [&](int number) { lengths[number] = static_cast<int>(strlen(texts[number])); });
    return count;
}
