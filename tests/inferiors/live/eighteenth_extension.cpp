// A part of engines in C++ for Python, eighteenth set: a client of a store, and pictures that are changed in parallel.
#include <arpa/inet.h>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace {

// Its threads are started when they are first needed, and stay for good.
class Threads {
public:
    static Threads &instance()
    {
        static auto *threads = new Threads(3);
        return *threads;
    }

    void run(int stripes, const std::function<void(int)> &body)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        body_ = &body;
        next_ = 0;
        stripes_ = left_ = stripes;
        wanted_.notify_all();
        ended_.wait(guard, [this] { return left_ == 0; });
        stripes_ = 0;
    }

private:
    explicit Threads(int count)
    {
        for (int number = 0; number < count; ++number)
            std::thread([this] { work(); }).detach();
    }

    void work()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (true) {
            wanted_.wait(guard, [this] { return next_ < stripes_; });
            int stripe = next_++;
            const auto &body = *body_;
            guard.unlock();
            body(stripe);
            guard.lock();
            if (--left_ == 0)
                ended_.notify_one();
        }
    }

    std::mutex mutex_;
    std::condition_variable wanted_, ended_;
    const std::function<void(int)> *body_ = nullptr;
    int next_ = 0, stripes_ = 0, left_ = 0;
};

bool send_all(int connection, const char *data, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(connection, data, count, 0);
        if (sent <= 0)
            return false;
        data += sent;
        count -= sent;
    }
    return true;
}

} // namespace

// A picture, turned upside down.
extern "C" void turn(const float *picture, float *turned, int rows, int columns)
{
    Threads::instance().run(rows, [=](int row) {
        memcpy(turned + row * columns, picture + (rows - 1 - row) * columns, columns * sizeof(float));
    });
}

// Says hello to the store, and waits until that one has said what it is.
extern "C" int connect_store(int port)
{
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(connection, reinterpret_cast<sockaddr *>(&address), sizeof(address)) != 0)
        return -1;
    char answer[8];
    if (!send_all(connection, "hello\n", 6) || recv(connection, answer, sizeof(answer), MSG_WAITALL) <= 0)
        return -1;
    close(connection);
    return answer[6] - '0';
}
