// A part of an engine in C++ for Python, eleventh set: a log whose lines go to a function of Python.
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>

namespace {

// Lines of many threads at a time; its level is changed when no line is on its way.
class Log {
public:
    void line(int level)
    {
        std::shared_lock<std::shared_mutex> guard(mutex_);
        if (level >= level_)
            write_(level);
    }

    void set_level(int level)
    {
        std::unique_lock<std::shared_mutex> guard(mutex_);
        level_ = level;
    }

    void start(void (*write)(int))
    {
        write_ = write;
        std::thread([this] {
            for (;;) {
                line(2);
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
        }).detach();
    }

private:
    std::shared_mutex mutex_;
    int level_ = 0;
    void (*write_)(int) = nullptr;
};

Log the_log;

} // namespace

extern "C" void log_start(void (*write)(int))
{
    the_log.start(write);
}

extern "C" void log_set_level(int level)
{
    the_log.set_level(level);
}
