// C++ programs that hang, eighteenth set: `eighteenth_native NAME FOLDER`.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <linux/futex.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static std::string folder;

static void at(const char *role, pid_t pid = getpid())
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << pid;
    rename(draft.c_str(), name.c_str());
}

namespace {

using std::chrono::milliseconds;

// What the collector of a script engine takes, while somebody wants to know.
class Profiler {
public:
    void start()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        profiling_ = true;
        pauses_.clear();
    }

    size_t stop()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        profiling_ = false;
        return pauses_.size();
    }

    void prologue() { begun_ = std::chrono::steady_clock::now(); }

    void epilogue()
    {
        mutex_.lock();
        if (!profiling_)
            return;
        pauses_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count());
        mutex_.unlock();
    }

private:
    std::mutex mutex_;
    bool profiling_ = false;
    std::chrono::steady_clock::time_point begun_;
    std::vector<double> pauses_;
};

// A script makes objects, which are collected now and then.
class ScriptEngine {
public:
    explicit ScriptEngine(Profiler &profiler) : profiler_(profiler) {}

    void run(int objects)
    {
        for (int number = 0; number < objects; ++number) {
            objects_.push_back(std::to_string(number));
            if (objects_.size() == 1000)
                collect();
        }
    }

    void collect()
    {
        profiler_.prologue();
        while (objects_.size() > 100)
            objects_.pop_front();
        profiler_.epilogue();
    }

private:
    Profiler &profiler_;
    std::deque<std::string> objects_;
};

// As X-Profiler/xprofiler#50: what is called after a collection takes the mutex, and when nobody profiles it returns
// before it gives the mutex back. It is called again after the next collection.
int returns_early_with_the_mutex()
{
    Profiler profiler;
    ScriptEngine engine(profiler);
    profiler.start();
    engine.run(5000);
    printf("%zu collections\n", profiler.stop());
    fflush(stdout);
    std::thread commands([&profiler] {
        std::this_thread::sleep_for(milliseconds(300));
        profiler.start();
    });
    at("main");
    engine.run(50000);
    commands.join();
    return 0;
}

// Memory is handed out from one list of free pages, under a lock that spins for a while, and then sleeps in between.
class PageHeap {
public:
    static constexpr size_t PAGE = 4096;

    static PageHeap &instance()
    {
        static auto *heap = new PageHeap;
        return *heap;
    }

    void *allocate()
    {
        lock();
        if (free_.empty())
            grow();
        void *page = free_.back();
        free_.pop_back();
        unlock();
        return page;
    }

    void give_back(void *page)
    {
        lock();
        free_.push_back(page);
        unlock();
    }

    std::atomic<bool> growing{false};

private:
    void lock()
    {
        for (int spins = 0; held_.exchange(true, std::memory_order_acquire); ++spins)
            if (spins > 1000)
                std::this_thread::sleep_for(milliseconds(2));
    }

    void unlock() { held_.store(false, std::memory_order_release); }

    // from the system, and cleared; many pages take long
    void grow()
    {
        growing = true;
        for (int number = 0; number < count_; ++number) {
            char *page = static_cast<char *>(std::calloc(1, PAGE));
            for (size_t byte = 0; byte < PAGE; byte += 64)
                page[byte] = 0;
            free_.push_back(page);
            if (number % 16 == 0)
                std::this_thread::sleep_for(milliseconds(1));
        }
        count_ *= 64;
        growing = false;
    }

    std::atomic<bool> held_{false};
    std::vector<void *> free_;
    int count_ = 64;
};

// All files that are open but for the first three, as the child of a process should not have them.
void close_files()
{
    auto *name = static_cast<char *>(PageHeap::instance().allocate());
    DIR *files = opendir("/proc/self/fd");
    std::vector<int> open;
    while (dirent *file = readdir(files)) {
        snprintf(name, PageHeap::PAGE, "%s", file->d_name);
        if (atoi(name) > 2 && atoi(name) != dirfd(files))
            open.push_back(atoi(name));
    }
    closedir(files);
    for (int file : open)
        fcntl(file, F_SETFD, FD_CLOEXEC);
    PageHeap::instance().give_back(name);
}

// Starts a program, and returns when the child is that program.
pid_t start_program(const char *program, bool last)
{
    int failed[2];
    if (pipe(failed) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        close(failed[0]);
        if (last)
            at("child");
        close_files();
        execl(program, program, nullptr);
        _exit(127);
    }
    close(failed[1]);
    if (last)
        at("main");
    char byte;
    ssize_t count = read(failed[0], &byte, 1);
    close(failed[0]);
    return count == 0 ? child : -1;
}

// As gperftools/gperftools#178: between fork and exec the child looks which files are open, and needs memory for that.
// Another thread was in the allocator when it was forked, and the child has its lock as it was.
int allocates_between_fork_and_exec()
{
    waitpid(start_program("/bin/true", false), nullptr, 0);
    std::atomic<bool> stopped{false};
    std::thread requests([&stopped] {
        std::vector<void *> pages;
        while (!stopped) {
            while (pages.size() < 1000)
                pages.push_back(PageHeap::instance().allocate());
            std::this_thread::sleep_for(milliseconds(5));
            PageHeap::instance().give_back(pages.back());
            pages.pop_back();
        }
    });
    while (!PageHeap::instance().growing)
        std::this_thread::yield();
    pid_t child = start_program("/bin/true", true);
    stopped = true;
    requests.join();
    waitpid(child, nullptr, 0);
    return 0;
}

// Who waits is in a list, and sleeps on a word of its own.
class WaitQueue {
public:
    template <typename Predicate> void wait(Predicate predicate, milliseconds loading)
    {
        while (!predicate()) {
            auto *record = new Record;
            std::this_thread::sleep_for(loading); // the page of the record is not in memory
            {
                std::lock_guard<std::mutex> guard(mutex_);
                record->next = oldest_.load();
                oldest_ = record;
            }
            while (record->woken == 0)
                syscall(SYS_futex, &record->woken, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
            delete record;
        }
    }

    // there is nothing to do, and no need for the mutex, where nobody waits
    void wake_all()
    {
        if (oldest_.load(std::memory_order_relaxed) == nullptr)
            return;
        std::lock_guard<std::mutex> guard(mutex_);
        Record *record = oldest_.exchange(nullptr);
        while (record != nullptr) {
            Record *next = record->next;
            record->woken = 1;
            syscall(SYS_futex, &record->woken, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
            record = next;
        }
    }

private:
    struct Record {
        std::atomic<int> woken{0};
        Record *next = nullptr;
    };
    std::mutex mutex_;
    std::atomic<Record *> oldest_{nullptr};
};

// As cloudius-systems/osv#1480: who wakes looks into the list without its mutex, and does not see who is just about to
// be in it. That one has looked at the state before, and nobody will wake it.
int wakes_nobody_that_it_has_not_seen()
{
    WaitQueue queue;
    std::atomic<int> loaded{0};
    std::thread decoder([&] {
        for (int number = 1; number <= 3; ++number)
            queue.wait([&] { return loaded >= number; }, milliseconds(number < 3 ? 0 : 400));
    });
    std::thread reader([&] {
        for (int number = 1; number <= 3; ++number) {
            std::this_thread::sleep_for(milliseconds(200));
            loaded = number;
            queue.wake_all();
        }
    });
    reader.join();
    at("main");
    decoder.join();
    return 0;
}

// Of a benchmark: its threads are counted, and the one that sees all of them sets the count back.
class CountingBarrier {
public:
    explicit CountingBarrier(int threads) : threads_(threads) {}

    void wait(milliseconds before_look, milliseconds before_reset)
    {
        count_.fetch_add(1, std::memory_order_acquire);
        scheduled_out(before_look);
        if (count_.load() == threads_) {
            scheduled_out(before_reset);
            count_.store(0, std::memory_order_release);
        } else {
            while (count_.load(std::memory_order_acquire) != 0)
                std::this_thread::yield();
        }
    }

private:
    static void scheduled_out(milliseconds time)
    {
        if (time.count() > 0)
            std::this_thread::sleep_for(time);
    }

    std::atomic<int> count_{0};
    int threads_;
};

// As ARM-software/synchronization-benchmarks#62: two threads add one each and look at the count after that. Both see
// two, and both set it back, one of them when the other one is in the next barrier already. That one is let through,
// and the late one waits in the next barrier alone.
int both_reset_the_barrier()
{
    CountingBarrier barrier(2);
    const milliseconds none(0);
    std::thread early([&] {
        barrier.wait(milliseconds(200), none);
        barrier.wait(none, none);
    });
    std::thread late([&] {
        std::this_thread::sleep_for(milliseconds(50));
        barrier.wait(none, milliseconds(600));
        std::this_thread::sleep_for(milliseconds(200)); // until the other one has seen it
        barrier.wait(none, none);
    });
    early.join();
    at("main");
    late.join();
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"returns-early-with-the-mutex", returns_early_with_the_mutex},
        {"allocates-between-fork-and-exec", allocates_between_fork_and_exec},
        {"wakes-nobody-that-it-has-not-seen", wakes_nobody_that_it_has_not_seen},
        {"both-reset-the-barrier", both_reset_the_barrier},
    };
    return programs.at(argv[1])();
}
