// A part of engines in C++ for Python, twenty-seventh set: calls that threads hand to that of the interface.
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using Handler = int (*)(int);

// Handlers are put on top of each other; the last one is asked.
struct Handlers {
    std::mutex mutex;
    std::vector<Handler> handlers;
};

Handlers &handlers()
{
    static auto *all = new Handlers;
    return *all;
}

std::atomic<int> asked{0}, popping{0};

} // namespace

extern "C" void push_handler(Handler handler)
{
    std::lock_guard<std::mutex> guard(handlers().mutex);
    handlers().handlers.push_back(handler);
}

extern "C" int pop_handler()
{
    popping = 1;
    std::lock_guard<std::mutex> guard(handlers().mutex);
    handlers().handlers.pop_back();
    return static_cast<int>(handlers().handlers.size());
}

extern "C" int calls_under_way() { return asked; }

// The handler is kept from being popped for as long as it is called. One that is asked for more prepares its call until
// somebody is about to pop it.
extern "C" int call_handler(int argument, int more)
{
    std::lock_guard<std::mutex> guard(handlers().mutex);
    ++asked;
    while (more && !popping)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    int answer = handlers().handlers.back()(argument);
    --asked;
    return answer;
}
