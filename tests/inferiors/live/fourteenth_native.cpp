// A C++ program that hangs, fourteenth set: `fourteenth_native NAME FOLDER`.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static std::string folder;

static void at(const char *role)
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << getpid();
    rename(draft.c_str(), name.c_str());
}

namespace {

enum class Status { ok, no_resource };

constexpr unsigned SLOTS = 16;

// Shared by two processes: messages from one to the other in slots, and who has come to the end.
struct Segment {
    std::atomic<unsigned> head{0}, tail{0}, ended{0};
    char slots[SLOTS][64];
};

// The side that writes. How far the other has read is looked up only when there seems to be no room.
class Endpoint {
public:
    explicit Endpoint(Segment *segment) : segment_(segment) {}

    Status send(const char *message)
    {
        unsigned head = segment_->head.load(std::memory_order_relaxed);
        if (head - cached_tail_ >= SLOTS) {
            cached_tail_ = segment_->tail.load(std::memory_order_acquire);
            if (head - cached_tail_ >= SLOTS)
                return Status::no_resource;
        }
        strncpy(segment_->slots[head % SLOTS], message, sizeof segment_->slots[0] - 1);
        segment_->head.store(head + 1, std::memory_order_release);
        return Status::ok;
    }

    // Done when there is room again. It does not look up how far the other has read.
    Status flush() const
    {
        return segment_->head.load() - cached_tail_ >= SLOTS ? Status::no_resource : Status::ok;
    }

private:
    Segment *segment_;
    unsigned cached_tail_ = 0;
};

// What a process has of the connection; both of them come to the same end.
class Worker {
public:
    Worker(Segment *segment, bool writes) : segment_(segment), endpoint_(segment), writes_(writes) {}

    void send(const char *message)
    {
        while (endpoint_.send(message) == Status::no_resource)
            progress();
    }

    void receive()
    {
        unsigned tail = segment_->tail.load(std::memory_order_relaxed);
        while (segment_->head.load(std::memory_order_acquire) == tail)
            progress();
        received_ += strlen(segment_->slots[tail % SLOTS]);
        segment_->tail.store(tail + 1, std::memory_order_release);
    }

    void flush()
    {
        while (endpoint_.flush() == Status::no_resource)
            progress();
    }

    void fence()
    {
        segment_->ended.fetch_add(1);
        while (segment_->ended.load() < 2)
            usleep(1000);
    }

    bool writes() const { return writes_; }

private:
    void progress()
    {
        sched_yield();
    }

    Segment *segment_;
    Endpoint endpoint_;
    bool writes_;
    size_t received_ = 0;
};

Worker *worker;

void finalize()
{
    at(worker->writes() ? "0" : "1");
    if (worker->writes())
        worker->flush();
    worker->fence();
}

// As pmodels/mpich#2514: before processes end, what they have sent by shared memory is flushed. Everything has been
// received, and the endpoint of rank 0 says for ever that there is no room.
int flush_never_done()
{
    void *memory = mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto *segment = new (memory) Segment;
    bool writes = fork() != 0;
    if (!writes)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    worker = new Worker(segment, writes);
    atexit(finalize);
    for (unsigned number = 0; number < SLOTS; ++number)
        writes ? worker->send("part of an allgatherv") : worker->receive();
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3 || strcmp(argv[1], "flush-never-done") != 0)
        return 2;
    folder = argv[2];
    return flush_never_done();
}
