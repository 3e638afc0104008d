#include "threads.h"

#include "../job.h"
#include "cuda_utils.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <poll.h>
#include <pthread.h>
#include <queue>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

void Signal::set() {
    std::lock_guard<std::mutex> lock(mutex_);
    happened_ = true;
    changed_.notify_all();
}

void Signal::wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return happened_; });
}

void name_thread(const char* name) { pthread_setname_np(pthread_self(), name); }

namespace fastertransformer {

class ThreadPool {
public:
    explicit ThreadPool(int size) {
        for (int i = 0; i < size; i++)
            std::thread(&ThreadPool::work, this, i).detach();
    }

private:
    ENGINE_FRAME void work(int index) {
        name_thread(("ft-pool-" + std::to_string(index)).c_str());
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            task_available_.wait(lock, [this] { return !tasks_.empty(); });
            tasks_.pop();
        }
    }

    std::mutex mutex_;
    std::condition_variable task_available_;
    std::queue<int> tasks_;
};

ENGINE_FRAME static void listenForRequests() {
    name_thread("http-listener");
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sa_family_t any = AF_UNIX;
    bind(listener, reinterpret_cast<sockaddr*>(&any), sizeof any);
    listen(listener, 16);
    pollfd incoming = {listener, POLLIN, 0};
    for (;;)
        if (poll(&incoming, 1, -1) > 0)
            close(accept(listener, nullptr, nullptr));
}

ENGINE_FRAME static void flushLog() {
    name_thread("logger");
    std::mutex mutex;
    std::condition_variable written;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;)
        written.wait_for(lock, std::chrono::seconds(5));
}

ENGINE_FRAME static void crashHandler(int, siginfo_t*, void*) {
    job_report_wait(UINT64_MAX);
    for (;;)
        pause();
}

}  // namespace fastertransformer

void start_background_threads(int pool_size) {
    static fastertransformer::ThreadPool pool(pool_size);
    std::thread(fastertransformer::listenForRequests).detach();
    std::thread(fastertransformer::flushLog).detach();
}

void install_crash_handler() {
    struct sigaction action = {};
    action.sa_sigaction = fastertransformer::crashHandler;
    action.sa_flags = SA_SIGINFO;
    for (int signal : {SIGBUS, SIGSEGV})
        sigaction(signal, &action, nullptr);
}
