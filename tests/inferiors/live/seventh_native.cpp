// C++ programs that hang, and a healthy one, seventh set: `seventh_native NAME FOLDER`.
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <future>
#include <map>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <vector>

static std::string folder;

static void at(const char *role)
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << getpid();
    rename(draft.c_str(), name.c_str());
}

static double compute(double seconds)
{
    auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    double sum = 0;
    while (std::chrono::steady_clock::now() < until)
        for (int number = 1; number < 10000; ++number)
            sum += 1.0 / number;
    return sum;
}

// Says when the weights are there. Nobody keeps the task's future, whose destructor waits for the task.
static void future_thrown_away()
{
    std::promise<int> weights;
    auto layers = weights.get_future().share();
    at("main");
    (void)std::async(std::launch::async, [layers] { printf("%d layers\n", layers.get()); });
    weights.set_value(32);
}

// Healthy: the futures are kept until the weights are there; then the tasks compute for some seconds.
static void futures_kept()
{
    at("main");
    for (;;) {
        std::promise<int> weights;
        auto layers = weights.get_future().share();
        std::vector<std::future<double>> tasks;
        for (int task = 1; task <= 3; ++task)
            tasks.push_back(std::async(std::launch::async, [=] { return compute(task + layers.get() / 32.0); }));
        weights.set_value(32);
        for (auto &task : tasks)
            printf("%f\n", task.get());
    }
}

static pthread_mutex_t pages = PTHREAD_MUTEX_INITIALIZER;

static void *prefetch(void *)
{
    pthread_mutex_lock(&pages);
    int file = open((folder + "/fifo").c_str(), O_RDONLY);
    char page;
    long count = read(file, &page, 1);
    pthread_mutex_unlock(&pages);
    return reinterpret_cast<void *>(count);
}

// The thread that reads pages in advance is cancelled while it waits for the disk, with the pages' mutex.
static void cancelled_with_mutex()
{
    pthread_t thread;
    pthread_create(&thread, nullptr, prefetch, nullptr);
    while (pthread_mutex_trylock(&pages) == 0) {
        pthread_mutex_unlock(&pages);
        usleep(1000);
    }
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
    at("main");
    pthread_mutex_lock(&pages);
}

int main(int, char **argv)
{
    const std::map<std::string, void (*)()> programs = {
        {"future-thrown-away", future_thrown_away},
        {"futures-kept", futures_kept},
        {"cancelled-with-mutex", cancelled_with_mutex},
    };
    folder = argv[2];
    programs.at(argv[1])();
}
