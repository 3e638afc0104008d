// C++ programs that hang, and healthy ones, twenty-third set: `twenty_third_native NAME FOLDER LIBRARY`.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <queue>
#include <random>
#include <regex>
#include <sched.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static std::string folder, library;

static void at(const char *role, pid_t pid = getpid())
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << pid;
    rename(draft.c_str(), name.c_str());
}

namespace {

using std::chrono::milliseconds;

// Tasks for some threads. Those that have nothing to do say so in a file, for who looks after the machine.
class ThreadPool {
public:
    explicit ThreadPool(int count)
    {
        for (int number = 0; number < count; ++number)
            threads_.emplace_back([this] { work(); });
    }

    ~ThreadPool()
    {
        running_ = false;
        available_.notify_all();
        for (auto &thread : threads_)
            thread.join();
    }

    void push(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push(std::move(task));
        ++total_;
        available_.notify_one();
    }

    void wait_for_tasks()
    {
        while (total_ > 0)
            std::this_thread::sleep_for(milliseconds(1));
    }

    int idle() const { return idle_; }

private:
    bool has_reason()
    {
        if (!tasks_.empty() || !running_)
            return true;
        ++idle_;
        std::ofstream(folder + "/idle", std::ios::app) << "a thread is idle\n";
        std::this_thread::sleep_for(milliseconds(300)); // until it is on the disk
        return false;
    }

    void work()
    {
        while (running_) {
            std::unique_lock<std::mutex> guard(mutex_);
            available_.wait(guard, [this] { return has_reason(); });
            if (!running_)
                break;
            auto task = std::move(tasks_.front());
            tasks_.pop();
            guard.unlock();
            task();
            --total_;
        }
    }

    std::atomic<bool> running_{true};
    std::atomic<int> total_{0}, idle_{0};
    std::mutex mutex_;
    std::condition_variable available_;
    std::queue<std::function<void()>> tasks_;
    std::vector<std::thread> threads_;
};

// As bshoshany/thread-pool#108: a pool is destroyed when all is done. The word that it ends is told without the mutex,
// to a thread that has just looked for it and is not yet in its wait.
int told_before_the_wait()
{
    std::vector<std::string> rows(64);
    {
        ThreadPool pool(1);
        while (pool.idle() < 1)
            std::this_thread::sleep_for(milliseconds(1));
        for (int number = 0; number < 64; ++number)
            pool.push([&rows, number] { rows[number] = std::to_string(number * 0.5); });
        pool.wait_for_tasks();
        at("main");
        while (pool.idle() < 2)
            std::this_thread::sleep_for(milliseconds(1));
    }
    printf("%s\n", rows[63].c_str());
    return 0;
}

// Blocks of one size from the system, under one lock for all threads. Free ones that touch are put together.
class Allocator {
public:
    void *allocate()
    {
        pthread_mutex_lock(&lock_);
        if (free_.empty())
            grow();
        void *block = free_.back();
        free_.pop_back();
        pthread_mutex_unlock(&lock_);
        return block;
    }

    void release(void *block)
    {
        pthread_mutex_lock(&lock_);
        free_.push_back(static_cast<char *>(block));
        if (++released_ % 2000 == 0)
            put_together();
        pthread_mutex_unlock(&lock_);
    }

    std::atomic<int> tidying{0};

private:
    void grow()
    {
        char *memory = static_cast<char *>(aligned_alloc(4096, 64 * 4096));
        for (int number = 0; number < 64; ++number)
            free_.push_back(memory + number * 4096);
    }

    void put_together()
    {
        ++tidying;
        for (int round = 0; round < 200; ++round) {
            std::sort(free_.begin(), free_.end());
            std::this_thread::sleep_for(milliseconds(10)); // a page of the list comes from the disk
        }
    }

    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    std::vector<char *> free_;
    long released_ = 0;
};

Allocator allocator;

// As alexcrichton/dlmalloc-rs#22: an allocator has one lock, and does nothing when a process is forked. A thread has
// it at that time; the child is without that thread, and wants memory.
int allocator_at_fork()
{
    std::thread([] {
        while (true)
            allocator.release(allocator.allocate());
    }).detach();
    while (allocator.tidying == 0)
        std::this_thread::sleep_for(milliseconds(1));
    pid_t child = fork();
    if (child == 0) {
        at("child");
        void *block = allocator.allocate();
        _exit(block == nullptr);
    }
    at("main");
    waitpid(child, nullptr, 0);
    return 0;
}

// As cmuparlay/parlaylib#100: a library has threads, which its scheduler joins when it is destroyed. That is while the
// library is unloaded, under the lock of the loader, and a thread that ends wants this lock.
int scheduler_of_a_library()
{
    void *loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    auto sum = reinterpret_cast<double (*)(const double *, int)>(dlsym(loaded, "sequence_sum"));
    std::vector<double> values(10000, 0.5);
    printf("%g\n", sum(values.data(), values.size()));
    fflush(stdout);
    at("main");
    dlclose(loaded);
    return 0;
}

struct Triangle {
    float x[3], y[3];
};

// From who sorts triangles to who draws a tile.
class Pipe {
public:
    void push(const Triangle &triangle)
    {
        while (end_ - begin_ == SIZE)
            sched_yield();
        triangles_[end_ % SIZE] = triangle;
        ++end_;
    }

    bool pop(Triangle &triangle)
    {
        if (begin_ == end_)
            return false;
        triangle = triangles_[begin_ % SIZE];
        ++begin_;
        return true;
    }

private:
    static constexpr size_t SIZE = 1024;
    Triangle triangles_[SIZE];
    std::atomic<size_t> begin_{0}, end_{0};
};

class Renderer {
public:
    void draw(const std::vector<Triangle> &model)
    {
        for (const Triangle &triangle : model) {
            float left = std::min({triangle.x[0], triangle.x[1], triangle.x[2]});
            bins_[static_cast<int>(left) % TILES].push(triangle);
        }
    }

    // without threads, the bins are drawn by who presents the frame
    float present()
    {
        float total = 0;
        Triangle triangle;
        for (Pipe &bin : bins_)
            while (bin.pop(triangle))
                total += triangle.x[0] * (triangle.y[1] - triangle.y[2]);
        return total;
    }

private:
    static constexpr int TILES = 4;
    Pipe bins_[TILES];
};

std::vector<Triangle> model_of(int count)
{
    std::vector<Triangle> model;
    for (int number = 0; number < count; ++number) {
        float place = static_cast<float>(number % 97);
        model.push_back({{place, place + 1, place + 2}, {0, 1, 3}});
    }
    return model;
}

// As bit-hack/nano3d#2: triangles are sorted into bins, which are pipes of some length. With one thread nobody draws
// before the frame is at its end, and a large model does not go into the pipes.
int bins_in_one_thread()
{
    static Renderer renderer;
    for (int count : {500, 2000, 20000}) {
        auto model = model_of(count);
        if (count == 20000)
            at("main");
        renderer.draw(model);
        printf("%g\n", renderer.present());
        fflush(stdout);
    }
    return 0;
}

// Healthy, as dotnet/corefx#41200: an expression has repeats within repeats. For lines that do not match it, all ways
// to share out the letters are tried; that takes a minute and more for each line.
int nested_repeats()
{
    const std::regex link("(?:[^\\s()<>]+|\\((?:[^\\s()<>]+)*\\))+!");
    for (int number = 0; number < 1000; ++number) {
        std::string line = std::string(number == 0 ? 12 : 29, 'a' + number % 20) + " and more";
        if (number == 1)
            at("main");
        bool found = std::regex_search(line, link, std::regex_constants::match_continuous);
        printf("line %d: %s\n", number, found ? "a link" : "none");
        fflush(stdout);
    }
    return 0;
}

// Vectors, and for each one those that are next to it.
class Index {
public:
    static constexpr int DIMENSION = 64, COUNT = 120000, NEIGHBOURS = 8;

    Index() : vectors_(static_cast<size_t>(COUNT) * DIMENSION), neighbours_(static_cast<size_t>(COUNT) * NEIGHBOURS)
    {
        std::minstd_rand random(7);
        for (float &value : vectors_)
            value = static_cast<float>(random() % 1000) / 1000;
    }

    void build(int threads)
    {
        std::vector<std::thread> builders;
        for (int number = 0; number < threads; ++number)
            builders.emplace_back([this] {
                for (int item = next_++; item < COUNT; item = next_++)
                    connect(item);
            });
        while (next_ < 100)
            std::this_thread::sleep_for(milliseconds(1));
        at("main");
        for (auto &builder : builders)
            builder.join();
    }

private:
    float distance(int left, int right) const
    {
        const float *first = &vectors_[static_cast<size_t>(left) * DIMENSION];
        const float *second = &vectors_[static_cast<size_t>(right) * DIMENSION];
        float total = 0;
        for (int number = 0; number < DIMENSION; ++number)
            total += (first[number] - second[number]) * (first[number] - second[number]);
        return total;
    }

    void connect(int item)
    {
        std::priority_queue<std::pair<float, int>> nearest;
        for (int other = 0; other < COUNT; ++other) {
            nearest.emplace(distance(item, other), other);
            if (nearest.size() > NEIGHBOURS)
                nearest.pop();
        }
        std::lock_guard<std::mutex> guard(mutex_);
        for (int number = 0; number < NEIGHBOURS; ++number, nearest.pop())
            neighbours_[static_cast<size_t>(item) * NEIGHBOURS + number] = nearest.top().second;
    }

    std::vector<float> vectors_;
    std::vector<int> neighbours_;
    std::atomic<int> next_{0};
    std::mutex mutex_;
};

// Healthy, as tensorchord/pgvecto.rs#618: an index of many vectors is built by some threads, for a day and more. Who
// wants it waits for them, and nothing is shown.
int index_of_many_vectors()
{
    static Index index;
    index.build(2);
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    folder = argv[2];
    library = argv[3];
    const std::map<std::string, int (*)()> programs = {
        {"told-before-the-wait", told_before_the_wait},
        {"allocator-at-fork", allocator_at_fork},
        {"scheduler-of-a-library", scheduler_of_a_library},
        {"bins-in-one-thread", bins_in_one_thread},
        {"nested-repeats", nested_repeats},
        {"index-of-many-vectors", index_of_many_vectors},
    };
    return programs.at(argv[1])();
}
