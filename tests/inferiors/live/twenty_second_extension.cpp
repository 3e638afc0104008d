// A part of engines in C++ for Python, twenty-second set: a server whose thread asks Python for its credentials.
#include <atomic>
#include <chrono>
#include <pthread.h>
#include <thread>

namespace {

// Accepts connections in a thread. For each of them, the credentials are asked for.
class Server {
public:
    explicit Server(int (*credentials)(int)) : credentials_(credentials) { start(); }

    void start()
    {
        stopped_ = false;
        thread_ = std::thread([this] { serve(); });
    }

    void stop()
    {
        stopped_ = true;
        thread_.join();
    }

    int served() const { return served_; }

private:
    void serve()
    {
        while (!stopped_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            credentials_(served_);
            ++served_;
        }
    }

    int (*credentials_)(int);
    std::atomic<bool> stopped_{false};
    std::atomic<int> served_{0};
    std::thread thread_;
};

Server *server;

void before_fork() { server->stop(); }

void after_fork() { server->start(); }

} // namespace

// No thread is to run while the process is forked: the server stops before that, and begins again after it.
extern "C" void start_server(int (*credentials)(int))
{
    server = new Server(credentials);
    pthread_atfork(before_fork, after_fork, nullptr);
}

extern "C" int served() { return server->served(); }
