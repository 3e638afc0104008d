// Parts of an engine in C++ for Python, tenth set: the lock of a cache of kernels, a ring of steps.
#include <array>
#include <atomic>
#include <sched.h>
#include <sys/file.h>

namespace {

// From one thread to another one.
class Ring {
public:
    void put(long step)
    {
        while (put_ - taken_ == slots_.size())
            sched_yield();
        slots_[put_ % slots_.size()] = step;
        ++put_;
    }

    long take()
    {
        if (taken_ == put_)
            return -1;
        long step = slots_[taken_ % slots_.size()];
        ++taken_;
        return step;
    }

private:
    std::array<long, 16> slots_{};
    std::atomic<unsigned long> put_{0}, taken_{0};
};

Ring ring;

} // namespace

extern "C" int cache_lock(int file)
{
    return flock(file, LOCK_EX);
}

extern "C" void ring_put(long step)
{
    ring.put(step);
}

extern "C" long ring_take()
{
    return ring.take();
}
