// C++ programs that hang, and healthy ones, fourth set: `fourth_native NAME FOLDER`.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <future>
#include <linux/io_uring.h>
#include <map>
#include <mqueue.h>
#include <omp.h>
#include <pthread.h>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

static std::string folder;

static void at(const char *role)
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << getpid();
    rename(draft.c_str(), name.c_str());
}

static double compute(int rounds)
{
    std::vector<double> row(4096, 1.01);
    double sum = 0;
    for (int round = 0; round < rounds; ++round)
        for (auto &value : row)
            sum += value *= 1.0000001;
    return sum;
}

static pthread_rwlock_t weights; // new readers wait while a writer waits

static void prefer_writers()
{
    pthread_rwlockattr_t kind;
    pthread_rwlockattr_init(&kind);
    pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&weights, &kind);
}

static void update_weights()
{
    pthread_rwlock_wrlock(&weights);
    compute(50);
    pthread_rwlock_unlock(&weights);
}

static double layer()
{
    pthread_rwlock_rdlock(&weights);
    double sum = compute(50);
    pthread_rwlock_unlock(&weights);
    return sum;
}

// A request that reads the weights calls a layer that reads them too; between the two an update came.
static void nested_read()
{
    prefer_writers();
    pthread_rwlock_rdlock(&weights);
    std::thread update(update_weights);
    while (pthread_rwlock_tryrdlock(&weights) == 0) { // until the update waits
        pthread_rwlock_unlock(&weights);
        std::this_thread::yield();
    }
    at("main");
    layer();
    pthread_rwlock_unlock(&weights);
    update.join();
}

// Healthy: three readers and a writer, in turns.
static void reads_and_updates()
{
    prefer_writers();
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i)
        readers.emplace_back([] {
            for (;;)
                layer();
        });
    std::thread writer([] {
        for (;;) {
            update_weights();
            compute(500);
        }
    });
    at("main");
    writer.join();
}

static void flush_blocks()
{
#pragma omp barrier // all threads have written their blocks
}

// The thread that collects the blocks waits for the others, which want to collect theirs.
static void critical_waits_for_team()
{
#pragma omp parallel num_threads(3)
    {
#pragma omp critical(blocks)
        {
            at("main");
            flush_blocks();
        }
    }
}

// Healthy: tasks of std::async whose parallel loops add up in a critical section, one at a time.
static void tasks_and_teams()
{
    at("main");
    for (;;) {
        double total = 0;
        auto task = std::async(std::launch::async, compute, 2000);
#pragma omp parallel num_threads(2)
        for (int i = 0; i < 20; ++i) {
            double part = compute(50);
#pragma omp critical(total)
            total += part;
        }
        total += task.get();
        if (total < 0)
            return;
    }
}

// dlclose() runs the destructors of the plugin, which joins a thread that loads a library.
static void unload_joins_thread()
{
    void *plugin = dlopen(getenv("PLUGIN"), RTLD_NOW);
    if (!plugin)
        exit(3);
    at("main");
    dlclose(plugin);
}

struct Queues {
    mqd_t requests, answers;
};

static mqd_t queue_of(const char *name)
{
    std::string path = "/gdbext-live-" + std::to_string(getpid()) + name;
    mq_attr size{};
    size.mq_maxmsg = 1;
    size.mq_msgsize = 64;
    mqd_t made = mq_open(path.c_str(), O_CREAT | O_RDWR, 0600, &size);
    mq_unlink(path.c_str());
    if (made < 0)
        exit(3);
    return made;
}

static void with_engine(const std::function<void(Queues)> &engine, const std::function<void(Queues)> &front)
{
    Queues both{queue_of("-requests"), queue_of("-answers")};
    if (fork() == 0) {
        at("child");
        engine(both);
        _exit(0);
    }
    at("main");
    front(both);
}

static void send_two(mqd_t queue)
{
    char text[64] = "tokens";
    for (int i = 0; i < 2; ++i)
        mq_send(queue, text, sizeof text, 0);
}

static void receive_two(mqd_t queue)
{
    char text[64];
    for (int i = 0; i < 2; ++i)
        mq_receive(queue, text, sizeof text, nullptr);
}

// Each sends all of its messages before it receives, and a queue has room for one.
static void message_queues_full()
{
    with_engine(
        [](Queues both) {
            send_two(both.answers);
            receive_two(both.requests);
        },
        [](Queues both) {
            send_two(both.requests);
            receive_two(both.answers);
        });
}

// Healthy: the engine receives, computes and answers.
static void message_queues_in_turn()
{
    with_engine(
        [](Queues both) {
            for (;;) {
                receive_two(both.requests);
                compute(2000);
                send_two(both.answers);
            }
        },
        [](Queues both) {
            for (;;) {
                send_two(both.requests);
                receive_two(both.answers);
            }
        });
}

// A ring of io_uring: the read was prepared and never submitted, and the loop waits for its completion.
static void read_not_submitted()
{
    io_uring_params parameters;
    memset(&parameters, 0, sizeof parameters);
    int ring = static_cast<int>(syscall(SYS_io_uring_setup, 8, &parameters));
    if (ring < 0)
        exit(3);
    at("main");
    while (syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, nullptr, 0) < 0 && errno == EINTR)
        continue;
}

int main(int, char **argv)
{
    const std::map<std::string, void (*)()> programs = {
        {"nested-read", nested_read},
        {"reads-and-updates", reads_and_updates},
        {"critical-waits-for-team", critical_waits_for_team},
        {"tasks-and-teams", tasks_and_teams},
        {"unload-joins-thread", unload_joins_thread},
        {"message-queues-full", message_queues_full},
        {"message-queues-in-turn", message_queues_in_turn},
        {"read-not-submitted", read_not_submitted},
    };
    folder = argv[2];
    programs.at(argv[1])();
}
