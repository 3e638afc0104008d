// C++ programs that hang, and healthy ones, eleventh set: `eleventh_native NAME FOLDER`.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

static std::string folder;

static void at(const char *role)
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << getpid();
    rename(draft.c_str(), name.c_str());
}

namespace {

int work_for(double seconds)
{
    auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    unsigned hash = 2166136261;
    while (std::chrono::steady_clock::now() < until)
        for (unsigned number = 0; number < 20000; ++number)
            hash = (hash ^ number) * 16777619;
    return static_cast<int>(hash);
}

void pause_for(int milliseconds)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// Two threads answer what comes by a connection, a line for each. The connection is told to one of them, once, and is
// armed again afterwards.
class Server {
public:
    Server(int connection, double seconds, bool arms_always)
        : connection_(connection), seconds_(seconds), arms_always_(arms_always), epoll_(epoll_create1(0))
    {
        arm(EPOLL_CTL_ADD);
        for (int number = 0; number < 2; ++number)
            std::thread([this] { run(); }).detach();
    }

private:
    void run()
    {
        epoll_event event;
        for (;;)
            if (epoll_wait(epoll_, &event, 1, -1) == 1 && handle())
                arm(EPOLL_CTL_MOD);
    }

    bool handle()
    {
        char part[4096];
        ssize_t size = read(connection_, part, sizeof part);
        request_.append(part, size > 0 ? size : 0);
        if (request_.empty() || request_.back() != '\n')
            return arms_always_; // more is to come
        work_for(seconds_);
        request_.clear();
        return write(connection_, "tokens\n", 7) == 7;
    }

    void arm(int how)
    {
        epoll_event event{};
        event.events = EPOLLIN | EPOLLONESHOT;
        epoll_ctl(epoll_, how, connection_, &event);
    }

    int connection_;
    double seconds_;
    bool arms_always_;
    int epoll_;
    std::string request_;
};

void send_text(int connection, const std::string &text)
{
    if (write(connection, text.data(), text.size()) < 0)
        throw std::runtime_error("write");
}

int connect_to_server(double seconds, bool arms_always)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        throw std::runtime_error("socketpair");
    new Server(ends[1], seconds, arms_always);
    return ends[0];
}

// The third request comes in two parts. After the first one the server returns early, and does not arm again.
void one_shot_not_armed()
{
    int connection = connect_to_server(0.01, false);
    char answer[64];
    for (int number = 0; number < 2; ++number) {
        send_text(connection, "a short prompt\n");
        read(connection, answer, sizeof answer);
    }
    send_text(connection, std::string(3000, 'p'));
    pause_for(300);
    send_text(connection, "\n");
    at("main");
    read(connection, answer, sizeof answer);
}

// Healthy: it is armed again in any case, and an answer takes 1.2 seconds.
void one_shot_armed()
{
    int connection = connect_to_server(1.2, true);
    char answer[64];
    at("main");
    for (;;) {
        send_text(connection, std::string(3000, 'p'));
        pause_for(50);
        send_text(connection, "\n");
        read(connection, answer, sizeof answer);
    }
}

// Writes metrics in a thread, which is told to stop and waited for when the exporter ends.
class Exporter {
public:
    void start()
    {
        thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
    }

    void add(const std::string &line)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        lines_.push_back(line);
        changed_.notify_one();
    }

private:
    void run(const std::stop_token &stop)
    {
        while (!stop.stop_requested()) {
            std::unique_lock<std::mutex> guard(mutex_);
            changed_.wait(guard, [this] { return !lines_.empty(); });
            std::ofstream(folder + "/metrics", std::ios::app) << lines_.front() << '\n';
            lines_.pop_front();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::string> lines_;
    std::jthread thread_;
};

Exporter exporter;

// The program ends: the exporter's thread is told to stop, which does not wake it up where it waits for a line.
void stop_is_not_heard()
{
    exporter.start();
    for (int number = 0; number < 3; ++number)
        exporter.add("requests " + std::to_string(number));
    pause_for(200);
    at("main");
}

struct Request {
    std::string prompt;
    std::promise<int> tokens;
    std::function<void()> told;
};

// What the engine does with a request; one without a prompt is dropped, so that its promise breaks.
void generate(std::shared_ptr<Request> request)
{
    if (request->prompt.empty()) {
        fprintf(stderr, "no prompt\n");
        return;
    }
    request->tokens.set_value(static_cast<int>(request->prompt.size()));
    request->told();
}

class Queue {
public:
    void put(std::shared_ptr<Request> request)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        requests_.push_back(std::move(request));
        changed_.notify_one();
    }

    std::shared_ptr<Request> take()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return !requests_.empty(); });
        auto request = std::move(requests_.front());
        requests_.pop_front();
        return request;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<Request>> requests_;
};

// The third request is dropped. It has a function that has the request, which therefore stays, with its promise.
void promise_kept_alive()
{
    static Queue queue;
    std::thread([] {
        for (;;)
            generate(queue.take());
    }).detach();
    for (const char *prompt : {"a short prompt", "another one", ""}) {
        auto request = std::make_shared<Request>();
        request->prompt = prompt;
        request->told = [request] {
            fprintf(stderr, "%zu bytes\n", request->prompt.size());
            request->prompt.clear();
        };
        auto tokens = request->tokens.get_future();
        queue.put(std::move(request));
        if (!*prompt)
            at("main");
        try {
            tokens.get();
        } catch (const std::future_error &error) {
            fprintf(stderr, "%s\n", error.what());
        }
    }
}

// The number of the latest step. Who makes one saves the system call where nobody sleeps.
class Steps {
public:
    void post(int number, double seconds)
    {
        bool somebody_sleeps = sleepers_ > 0;
        work_for(seconds); // copies the tokens
        latest_ = number;
        if (somebody_sleeps)
            wake();
    }

    void post_and_wake(int number)
    {
        latest_ = number;
        wake();
    }

    void wait_for(int number)
    {
        ++sleepers_;
        for (;;) {
            int times = woken_;
            if (latest_ >= number)
                break;
            woken_.wait(times);
        }
        --sleepers_;
    }

private:
    void wake()
    {
        ++woken_;
        woken_.notify_all();
    }

    std::atomic<int> latest_{0}, sleepers_{0}, woken_{0};
};

// Who waits for the fourth step comes while its tokens are copied, after the look at who sleeps.
void wait_without_notify()
{
    static Steps steps, orders;
    std::thread([] {
        for (int number = 1;; ++number) {
            orders.wait_for(number);
            work_for(0.2);
            steps.post(number, 0.6);
        }
    }).detach();
    for (int number = 1; number <= 4; ++number) {
        orders.post_and_wake(number);
        if (number == 4) {
            pause_for(500);
            at("main");
        }
        steps.wait_for(number);
    }
}

// Healthy: two threads sleep until the next step, which takes 1.2 seconds to be made.
void parked_between_steps()
{
    static Steps steps;
    for (int thread = 0; thread < 2; ++thread)
        std::thread([] {
            for (int number = 1;; ++number) {
                steps.wait_for(number);
                work_for(0.01);
            }
        }).detach();
    at("main");
    for (int number = 1;; ++number) {
        work_for(1.2);
        steps.post_and_wake(number);
    }
}

// Healthy: for each epoch two threads load, one of them from slow storage, and the main thread waits for both.
void latch_for_each_epoch()
{
    at("main");
    for (;;) {
        std::latch loaded(2);
        std::thread slow([&loaded] {
            for (int piece = 0; piece < 14; ++piece)
                pause_for(100);
            loaded.count_down();
        });
        std::thread fast([&loaded] {
            work_for(0.05);
            loaded.count_down();
        });
        loaded.wait();
        slow.join();
        fast.join();
    }
}

} // namespace

int main(int, char **argv)
{
    const std::map<std::string, void (*)()> programs = {
        {"one-shot-not-armed", one_shot_not_armed},
        {"one-shot-armed", one_shot_armed},
        {"stop-is-not-heard", stop_is_not_heard},
        {"promise-kept-alive", promise_kept_alive},
        {"wait-without-notify", wait_without_notify},
        {"parked-between-steps", parked_between_steps},
        {"latch-for-each-epoch", latch_for_each_epoch},
    };
    folder = argv[2];
    programs.at(argv[1])();
}
