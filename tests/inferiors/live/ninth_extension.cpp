// Parts of an engine in C++ for Python, ninth set: a barrier of a team, a wait for an answer, a thread that reports.
#include <chrono>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <unistd.h>

namespace {

pthread_barrier_t team;

using Report = void (*)(long);

// Counts what has been moved. A fork waits until no report is on its way.
class Reporter {
public:
    explicit Reporter(Report report) : report_(report), thread_([this] { run(); })
    {
        pthread_atfork([] { mutex_.lock(); }, [] { mutex_.unlock(); }, [] { mutex_.unlock(); });
    }

private:
    void run()
    {
        for (;;) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            std::lock_guard<std::mutex> guard(mutex_);
            report_(++moved_);
        }
    }

    static inline std::mutex mutex_;
    Report report_;
    long moved_ = 0;
    std::thread thread_;
};

Reporter *reporter;

} // namespace

extern "C" void team_open(int threads)
{
    pthread_barrier_init(&team, nullptr, threads);
}

extern "C" void team_wait()
{
    pthread_barrier_wait(&team);
}

extern "C" int answer_wait(int pipe)
{
    char answer = 0;
    return read(pipe, &answer, 1) == 1 ? answer : -1;
}

extern "C" void reporter_start(Report report)
{
    reporter = new Reporter(report);
}
