// A cache's blocks for Python, fifth set: a thread evicts when there is no free one, and tells Python what it evicted.
#include <condition_variable>
#include <mutex>
#include <thread>

namespace {

struct BlockManager {
    std::mutex guard;
    std::condition_variable wanted, freed;
    int free = 2, wants = 0;
    void (*on_evict)(int) = nullptr;

    void evict()
    {
        std::unique_lock<std::mutex> held(guard);
        for (int block = 0;; ++block) {
            wanted.wait(held, [this] { return wants > free; });
            on_evict(block); // written down by Python before anybody can have the block
            ++free;
            freed.notify_all();
        }
    }

    int allocate()
    {
        std::unique_lock<std::mutex> held(guard);
        ++wants;
        wanted.notify_one();
        freed.wait(held, [this] { return free > 0; });
        --wants;
        return --free;
    }
};

BlockManager &manager()
{
    static auto &only = *new BlockManager;
    return only;
}

} // namespace

extern "C" void block_manager_start(void (*on_evict)(int))
{
    manager().on_evict = on_evict;
    std::thread(&BlockManager::evict, &manager()).detach();
}

extern "C" int block_manager_allocate()
{
    return manager().allocate();
}
