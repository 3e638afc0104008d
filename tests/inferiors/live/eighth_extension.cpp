// Parts of an engine in C++ for Python, eighth set: a table of block hashes, a thread that moves blocks, a packer.
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

namespace {

class BlockTable {
public:
    void add(unsigned long hash)
    {
        size_t slot = hash % slots_.size();
        while (slots_[slot] != 0)
            slot = (slot + 1) % slots_.size();
        slots_[slot] = hash;
    }

private:
    std::array<unsigned long, 64> slots_{};
};

BlockTable *blocks;

using Report = void (*)(long);

class Mover {
public:
    explicit Mover(Report report) : report_(report), thread_([this] { run(); }) {}
    void stop()
    {
        stopped_ = true;
        thread_.join();
    }

private:
    void run()
    {
        long moved = 0;
        while (!stopped_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            report_(++moved);
        }
        report_(moved); // the last ones
    }

    Report report_;
    std::atomic<bool> stopped_{false};
    std::thread thread_;
};

Mover *mover;

} // namespace

extern "C" void blocks_open()
{
    blocks = new BlockTable;
}

extern "C" void blocks_add(unsigned long hash)
{
    blocks->add(hash);
}

extern "C" void mover_start(Report report)
{
    mover = new Mover(report);
}

extern "C" void mover_stop()
{
    mover->stop();
}

extern "C" double weights_pack(double seconds)
{
    auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    double sum = 0;
    while (std::chrono::steady_clock::now() < until)
        for (int number = 1; number < 20000; ++number)
            sum += std::sqrt(static_cast<double>(number));
    return sum;
}
