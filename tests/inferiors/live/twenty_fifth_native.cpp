// C++ programs that hang, and healthy ones, twenty-fifth set: `twenty_fifth_native NAME FOLDER`.
#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sys/socket.h>
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

// What is known of the machine, for all who ask.
class SystemInfoCache {
public:
    explicit SystemInfoCache(std::function<std::string(const std::string &)> get) : get_(std::move(get)) {}

    std::string with_cache(bool refresh)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (refresh) {
            at("main");
            info_ = "cpu " + std::to_string(std::thread::hardware_concurrency()) + ", " + backend_status();
        }
        return info_;
    }

private:
    std::string backend_status() { return get_("/v1/system-info"); }

    std::function<std::string(const std::string &)> get_;
    std::mutex mutex_;
    std::string info_;
};

// One thread for each connection, and one line for each request.
class Server {
public:
    Server() : listener_(socket(AF_INET, SOCK_STREAM, 0))
    {
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        bind(listener_, reinterpret_cast<sockaddr *>(&address_), length_);
        getsockname(listener_, reinterpret_cast<sockaddr *>(&address_), &length_);
        listen(listener_, 16);
    }

    void start(std::function<std::string(const std::string &)> handler)
    {
        handler_ = std::move(handler);
        std::thread([this] {
            while (true) {
                int connection = accept(listener_, nullptr, nullptr);
                std::thread([this, connection] { serve(connection); }).detach();
            }
        }).detach();
    }

    std::string get(const std::string &path)
    {
        int connection = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(connection, reinterpret_cast<sockaddr *>(&address_), length_) != 0)
            return "";
        std::string request = path + "\n";
        send(connection, request.data(), request.size(), MSG_NOSIGNAL);
        std::string answer = read_line(connection);
        close(connection);
        return answer;
    }

private:
    static std::string read_line(int connection)
    {
        std::string line;
        char letter;
        while (recv(connection, &letter, 1, 0) == 1 && letter != '\n')
            line += letter;
        return line;
    }

    void serve(int connection)
    {
        std::string answer = handler_(read_line(connection)) + "\n";
        send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
        close(connection);
    }

    int listener_;
    sockaddr_in address_{};
    socklen_t length_ = sizeof address_;
    std::function<std::string(const std::string &)> handler_;
};

// As lemonade-sdk/lemonade#2414: the first look at the machine fills a cache, under its lock. For a part of it the
// program asks its own server, whose thread looks into the same cache.
int fills_the_system_info()
{
    static Server server;
    static SystemInfoCache cache([](const std::string &path) { return server.get(path); });
    server.start([](const std::string &path) { return path == "/live" ? "ok" : cache.with_cache(false); });
    printf("%s\n", server.get("/live").c_str());
    printf("%s\n", cache.with_cache(true).c_str());
    return 0;
}

// Its threads look for the next task of all, and wait until there is news.
class BackgroundProcessingPool {
public:
    using Task = std::function<bool()>;

    explicit BackgroundProcessingPool(int threads)
    {
        for (int number = 0; number < threads; ++number)
            threads_.emplace_back([this] { work(); });
    }

    ~BackgroundProcessingPool()
    {
        shutdown_ = true;
        wake_.notify_all();
        told_ = true;
        at("main");
        for (auto &thread : threads_)
            thread.join();
    }

    void add(Task task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push_back(std::move(task));
        wake_.notify_one();
    }

    // a task is looked at when this is given: in the midst of it the pool is told to end
    void look_with(std::function<void()> look) { look_ = std::move(look); }
    bool told() const { return told_; }

private:
    bool pop(Task &task)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (!shutdown_) {
            if (look_)
                look_();
            if (!tasks_.empty()) {
                task = std::move(tasks_.front());
                tasks_.pop_front();
                return true;
            }
            wake_.wait(guard);
        }
        return false;
    }

    void work()
    {
        Task task;
        while (pop(task))
            task();
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Task> tasks_;
    std::vector<std::thread> threads_;
    std::function<void()> look_;
    std::atomic<bool> shutdown_{false}, told_{false};
};

// As pingcap/tiflash#7824: a task of the pool has ended, an upload that takes long, and its thread has seen that the
// pool goes on. The pool is told to end before the thread waits for more.
int uploads_then_ends()
{
    auto pool = std::make_unique<BackgroundProcessingPool>(1);
    auto &background = *pool;
    std::atomic<bool> looking{false};
    pool->add([&] {
        background.look_with([&] {
            looking = true;
            while (!background.told())
                std::this_thread::sleep_for(milliseconds(1));
        });
        return true;
    });
    while (!looking)
        std::this_thread::sleep_for(milliseconds(1));
    pool.reset();
    return 0;
}

// Of a runtime: the nodes of a graph and the parts of one node have the same threads.
class ThreadPool {
public:
    explicit ThreadPool(int threads)
    {
        for (int number = 0; number < threads; ++number)
            std::thread([this] { work(); }).detach();
    }

    void schedule(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        tasks_.push_back(std::move(task));
        filled_.notify_one();
    }

    void parallel_for(int total, const std::function<void(int)> &part)
    {
        Barrier barrier(total);
        for (int number = 0; number < total; ++number)
            schedule([&, number] {
                part(number);
                barrier.notify();
            });
        barrier.wait();
    }

    class Barrier {
    public:
        explicit Barrier(int count) : left_(count) {}

        void notify()
        {
            std::lock_guard<std::mutex> guard(mutex_);
            if (--left_ == 0)
                ended_.notify_all();
        }

        void wait()
        {
            std::unique_lock<std::mutex> guard(mutex_);
            ended_.wait(guard, [this] { return left_ == 0; });
        }

    private:
        std::mutex mutex_;
        std::condition_variable ended_;
        int left_;
    };

private:
    void work()
    {
        while (true) {
            std::unique_lock<std::mutex> guard(mutex_);
            filled_.wait(guard, [this] { return !tasks_.empty(); });
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            guard.unlock();
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::function<void()>> tasks_;
};

// Rows of a matrix times a vector.
void multiply(const std::vector<float> &matrix, const std::vector<float> &vector, std::vector<float> &result, size_t row)
{
    float sum = 0;
    for (size_t column = 0; column < vector.size(); ++column)
        sum += matrix[row * vector.size() + column] * vector[column];
    result[row] = sum;
}

// As microsoft/onnxruntime#1784: the nodes of a graph run in the threads of the session, and each of them gives its
// rows to the same threads. All threads wait for rows.
int runs_nodes_in_the_session()
{
    static auto *pool = new ThreadPool(2);
    static std::vector<float> matrix(64 * 64, 0.5f), input(64, 1.0f);
    static std::atomic<int> begun{0};
    static ThreadPool::Barrier graph(2);
    static std::vector<float> outputs[2] = {std::vector<float>(64), std::vector<float>(64)};
    for (auto &output : outputs)
        pool->schedule([&output] {
            for (++begun; begun < 2;)
                std::this_thread::yield();
            pool->parallel_for(4, [&output](int number) {
                for (size_t row = number * 16; row < size_t(number + 1) * 16; ++row)
                    multiply(matrix, input, output, row);
            });
            graph.notify();
        });
    at("main");
    graph.wait();
    return 0;
}

// Who wants to know of something has an observer, which is called under its mutex, so that it lives as long.
class Observer {
public:
    explicit Observer(std::function<void(const std::string &)> handler) : handler_(std::move(handler)) {}

    void notify(const std::string &notification)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (handler_)
            handler_(notification);
    }

    void disable()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        handler_ = nullptr;
    }

private:
    std::mutex mutex_;
    std::function<void(const std::string &)> handler_;
};

class NotificationCenter {
public:
    void add(const std::shared_ptr<Observer> &observer)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        observers_.push_back(observer);
    }

    void remove(const std::shared_ptr<Observer> &observer)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        removing_ = true;
        for (auto &one : observers_)
            if (one == observer)
                one->disable();
        observers_.erase(std::remove(observers_.begin(), observers_.end(), observer), observers_.end());
    }

    void post(const std::string &notification)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        auto observers = observers_;
        guard.unlock();
        for (auto &observer : observers)
            observer->notify(notification);
    }

    bool removing() const { return removing_; }

private:
    std::mutex mutex_;
    std::vector<std::shared_ptr<Observer>> observers_;
    std::atomic<bool> removing_{false};
};

// As pocoproject/poco#5168: an observer that is called wants to be removed, as its peer is not there any more. Another
// thread removes it at the same time.
int removes_an_observer()
{
    static NotificationCenter center;
    static std::atomic<bool> called{false};
    static std::shared_ptr<Observer> observer;
    observer = std::make_shared<Observer>([](const std::string &notification) {
        if (notification != "disconnected")
            return;
        called = true;
        while (!center.removing())
            std::this_thread::yield();
        center.remove(observer);
    });
    center.add(observer);
    center.post("connected");
    std::thread reactor([] { center.post("disconnected"); });
    while (!called)
        std::this_thread::yield();
    at("main");
    center.remove(observer);
    reactor.join();
    return 0;
}

// Healthy, as ggml-org/llama.cpp#4182: an image is encoded by few cores before the first word of an answer comes.
int encodes_an_image()
{
    constexpr size_t SIZE = 384, LAYERS = 384;
    std::vector<float> weights(SIZE * SIZE, 0.01f);
    for (size_t image = 0;; ++image) {
        std::vector<std::vector<float>> patches(576, std::vector<float>(SIZE, 0.1f));
        if (image == 0) {
            printf("encoding an image of %zu patches\n", patches.size());
            fflush(stdout);
            at("main");
        }
        for (size_t layer = 0; layer < LAYERS; ++layer) {
            std::vector<std::thread> threads;
            for (size_t part = 0; part < 2; ++part)
                threads.emplace_back([&, part] {
                    std::vector<float> result(SIZE);
                    for (size_t patch = part; patch < patches.size(); patch += 2) {
                        for (size_t row = 0; row < SIZE; ++row)
                            multiply(weights, patches[patch], result, row);
                        for (size_t row = 0; row < SIZE; ++row)
                            patches[patch][row] = std::tanh(result[row]);
                    }
                });
            for (auto &thread : threads)
                thread.join();
        }
    }
    return 0;
}

// A model that is computed by the processor, a few words in ten seconds.
class Model {
public:
    std::string generate(int tokens)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        std::string text;
        std::vector<float> state(2048, 0.1f), next(2048);
        for (int token = 0; token < tokens; ++token) {
            for (int layer = 0; layer < 100; ++layer) {
                for (size_t row = 0; row < state.size(); ++row)
                    multiply(weights_, state, next, row);
                for (size_t row = 0; row < state.size(); ++row)
                    state[row] = std::tanh(next[row] + 0.1f);
            }
            text += char('a' + int(state[token % state.size()] * 10) % 26);
        }
        return text;
    }

private:
    std::mutex mutex_;
    std::vector<float> weights_ = std::vector<float>(2048 * 2048, 0.001f);
};

// Healthy, as 1bit-MONSTER/1bit-MONSTER#948: there is one model and a lock for it, and a request has a large model
// computed slowly for many minutes. Its client is not there any more, and the others wait.
int generates_for_one()
{
    static Server server;
    static Model model;
    server.start([](const std::string &path) {
        if (path == "/health")
            return std::string("ok");
        return model.generate(path == "/long" ? 4000 : 4);
    });
    printf("%s\n", server.get("/health").c_str());
    std::thread([] { server.get("/long"); }).detach();
    std::thread([] {
        std::this_thread::sleep_for(milliseconds(500));
        server.get("/short");
    }).detach();
    std::this_thread::sleep_for(milliseconds(600));
    at("main");
    while (true)
        printf("%s\n", server.get("/short").c_str());
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    const std::map<std::string, int (*)()> programs = {
        {"fills-the-system-info", fills_the_system_info},
        {"uploads-then-ends", uploads_then_ends},
        {"runs-nodes-in-the-session", runs_nodes_in_the_session},
        {"removes-an-observer", removes_an_observer},
        {"encodes-an-image", encodes_an_image},
        {"generates-for-one", generates_for_one},
    };
    return programs.at(argv[1])();
}
