/* The threads that every engine has besides the ones that matter. */
#pragma once

#include <condition_variable>
#include <mutex>

/* One thread says that something has happened, another waits for it. */
class Signal {
public:
    void set();
    void wait();

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool happened_ = false;
};

void name_thread(const char* name);
/* A pool in condition variables, a listener in poll, a logger in a timed wait. They run until the process ends. */
void start_background_threads(int pool_size);
/* SIGBUS and SIGSEGV end in a handler that keeps the process, so that it can be looked at. */
void install_crash_handler();
