// Parts of an engine in C++ for Python, seventh set: a block table, a log with times, a table of Python's making.
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

std::vector<long> *table;

// As many engines do it: the process stays, so that somebody can attach to it.
void on_crash(int)
{
    static const char text[] = "crashed: attach a debugger\n";
    (void)!write(2, text, sizeof text - 1);
    for (;;) {
        pause();
    }
}

std::atomic<long> lines;

// A line of the log for each event of the device: its time, as the log's format wants it. Events come in bursts.
void write_log()
{
    for (;;) {
        for (int event = 0; event < 40000; ++event) {
            time_t now = time(nullptr);
            tm parts;
            char text[32];
            strftime(text, sizeof text, "%F %T", localtime_r(&now, &parts));
            ++lines;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

} // namespace

extern "C" void table_open()
{
    table = new std::vector<long>(4096, 7);
    signal(SIGSEGV, on_crash);
}

extern "C" long table_row(long index)
{
    return (*table)[static_cast<size_t>(index)];
}

extern "C" void log_start()
{
    std::thread(write_log).detach();
}

extern "C" long operators_count(long (*fill)())
{
    static const long count = fill();
    return count;
}
