// C++ programs that hang, and a healthy one, thirty-first set: `thirty_first_native NAME FOLDER`.
#include "program.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using live::at;
using std::chrono::milliseconds;

// A thread that does a round of work when it is woken, as a cleaner of the buffers of a database. Who wakes it may wait
// for a round that has begun after that.
class WorkerThread {
public:
    explicit WorkerThread(std::function<void()> work) : work_(std::move(work)), thread_([this] { run(); }) {}

    ~WorkerThread()
    {
        stop();
        thread_.join();
    }

    void wakeup(bool wait)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        long round = rounds_completed_ + 1;
        if (busy_)  // what is under way has begun before, and does not count
            round += 2;
        requested_ = true;
        ++requests_;
        wakeup_.notify_one();
        if (wait)
            done_.wait(guard, [&] { return rounds_completed_ >= round || stopped_; });
    }

    void wait_until_busy()
    {
        while (!busy_)
            std::this_thread::sleep_for(milliseconds(1));
    }

    // How often it was woken.
    int requests() const { return requests_; }

private:
    void run()
    {
        while (true) {
            {
                std::unique_lock<std::mutex> guard(mutex_);
                wakeup_.wait(guard, [this] { return requested_ || stopped_; });
                if (stopped_)
                    return;
                requested_ = false;
                busy_ = true;
            }
            work_();
            std::lock_guard<std::mutex> guard(mutex_);
            ++rounds_completed_;
            busy_ = false;
            done_.notify_all();
        }
    }

    void stop()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        stopped_ = true;
        wakeup_.notify_all();
        done_.notify_all();
    }

    std::function<void()> work_;
    std::mutex mutex_;
    std::condition_variable wakeup_, done_;
    bool requested_ = false, stopped_ = false;
    std::atomic<bool> busy_{false};
    std::atomic<int> requests_{0};
    long rounds_completed_ = 0;
    std::thread thread_;
};

struct Page {
    long number = 0;
    bool dirty = false;
};

// As caetanosauer/zero#28: the cleaner is woken while it is busy for somebody else. The round that follows is the one
// to wait for, and it is waited for one more, which nobody asks for.
int waits_for_a_round()
{
    std::vector<Page> pages(512);
    std::mutex lock;
    std::atomic<WorkerThread *> self{nullptr};
    WorkerThread cleaner([&] {
        std::lock_guard<std::mutex> guard(lock);
        do {
            for (auto &page : pages)
                page.dirty = false;
        } while (self.load()->requests() == 2);  // there are new ones as long as nobody wants them to be written
    });
    self = &cleaner;
    cleaner.wakeup(true);
    std::thread log([&] { cleaner.wakeup(false); });
    cleaner.wait_until_busy();
    log.join();
    at("main");
    cleaner.wakeup(true);
    printf("a checkpoint of %zu pages\n", pages.size());
    return 0;
}

// Says where a program has failed, once.
class FailureDump {
public:
    static void install()
    {
        struct sigaction action = {};
        action.sa_sigaction = handle;
        action.sa_flags = SA_SIGINFO;
        sigemptyset(&action.sa_mask);
        for (int number : {SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGBUS})
            sigaction(number, &action, nullptr);
    }

private:
    static void handle(int number, siginfo_t *info, void *)
    {
        static std::once_flag once;
        std::call_once(once, dump, number, info);
        signal(number, SIG_DFL);
        raise(number);
    }

    static void dump(int number, siginfo_t *info)
    {
        char text[128];
        int size = snprintf(text, sizeof text, "*** signal %d at %p ***\n", number, info->si_addr);
        if (write(STDERR_FILENO, text, size) == size)
            symbolize(info->si_addr);
    }

    // The map of the program is read for the name of a function.
    static void symbolize(const void *address)
    {
        FILE *maps = fopen("/proc/self/maps", "r");
        char line[512];
        unsigned long from, to, wanted = reinterpret_cast<unsigned long>(address);
        while (maps && fgets(line, sizeof line, maps))
            if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= wanted && wanted < to)
                return;
        fprintf(stderr, "no object has the address %p\n", address);
        abort();
    }
};

struct Request {
    const char *text = nullptr;
    size_t size = 0;
};

[[gnu::noinline]] int sum_of(const Request *request)
{
    int sum = 0;
    for (size_t place = 0; place < request->size; ++place)
        sum += request->text[place];
    return sum;
}

// As ng-log/ng-log#40: a request is not there. While that is dumped there is another failure, on the same thread, and
// its handler waits until the dump is done.
int fails_while_it_dumps()
{
    FailureDump::install();
    Request one = {"a prompt", 8};
    const Request *volatile requests[] = {&one, nullptr};
    for (const Request *request : requests) {
        if (!request)
            at("main");
        printf("%d\n", sum_of(request));
        fflush(stdout);
    }
    return 0;
}

// Many may read and one may write. Who reads may go on to write, when the others have stopped to read.
class GraphLock {
public:
    void read()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return !writing_; });
        ++readers_;
    }

    void upgrade()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return readers_ == 1 && !writing_; });
        readers_ = 0;
        writing_ = true;
    }

    void release_read()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        --readers_;
        changed_.notify_all();
    }

    void release_write()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        writing_ = false;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int readers_ = 0;
    bool writing_ = false;
};

class Graph {
public:
    // An edge is added where there is none yet; `others` counts those that look for theirs at the same time.
    void connect(int from, int to, std::atomic<int> *others = nullptr)
    {
        lock_.read();
        if (others)
            for (++*others; *others < 2;)
                std::this_thread::yield();
        for (auto &edge : edges_)
            if (edge.first == from && edge.second == to) {
                lock_.release_read();
                return;
            }
        lock_.upgrade();
        edges_.emplace_back(from, to);
        lock_.release_write();
    }

private:
    GraphLock lock_;
    std::vector<std::pair<int, int>> edges_;
};

// As kraison/vivace-graph#76: two transactions read, and both find that they have something to write.
int upgrades_both_readers()
{
    Graph graph;
    graph.connect(0, 1);
    std::atomic<int> looking{0};
    at("main");
    std::thread other([&] { graph.connect(1, 2, &looking); });
    graph.connect(2, 3, &looking);
    other.join();
    return 0;
}

// Pieces are cut from rolls so that little is left.
class CuttingStock {
public:
    CuttingStock(int roll, std::vector<int> pieces) : roll_(roll), pieces_(std::move(pieces)) {}

    int solve()
    {
        rolls_.assign(pieces_.size(), 0);
        best_ = pieces_.size();
        place(0, 0);
        return best_;
    }

private:
    void place(size_t piece, int used)
    {
        if (++nodes_ == 1000000)
            at("main");
        if (used > best_)
            return;
        if (piece == pieces_.size()) {
            best_ = used;
            return;
        }
        for (int roll = 0; roll <= used; ++roll) {
            if (rolls_[roll] + pieces_[piece] > roll_)
                continue;
            rolls_[roll] += pieces_[piece];
            place(piece + 1, std::max(used, roll + 1));
            rolls_[roll] -= pieces_[piece];
        }
    }

    int roll_, best_ = 0;
    long nodes_ = 0;
    std::vector<int> pieces_, rolls_;
};

// Healthy, as google/or-tools#2012: a search for the least number of rolls goes on for hours.
int cuts_its_rolls()
{
    std::vector<int> pieces;
    for (int number = 0; number < 60; ++number)
        pieces.push_back(150 + number * 37 % 211);
    printf("%d rolls\n", CuttingStock(1000, pieces).solve());
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    return live::run(argc, argv, {
        {"waits-for-a-round", waits_for_a_round},
        {"fails-while-it-dumps", fails_while_it_dumps},
        {"upgrades-both-readers", upgrades_both_readers},
        {"cuts-its-rolls", cuts_its_rolls},
    });
}
