// One rank of a small job for llm-break: steps with a tensor and a collective. The test writes into the shared file what
// becomes of it: another program in its place, a NaN at a step, a rank that the others shall not wait for any more.
// IN_A_THREAD: the main thread only waits.
//   RANK=1 WORLD_SIZE=3 break_rank STATE
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace fastertransformer {

typedef enum datatype_enum {
    TYPE_INVALID, TYPE_BOOL, TYPE_UINT8, TYPE_UINT16, TYPE_UINT32, TYPE_UINT64, TYPE_INT8, TYPE_INT16, TYPE_INT32,
    TYPE_INT64, TYPE_FP16, TYPE_FP32, TYPE_FP64, TYPE_BYTES, TYPE_BF16,
} DataType;

typedef enum memorytype_enum { MEMORY_CPU, MEMORY_CPU_PINNED, MEMORY_GPU } MemoryType;

struct Tensor {
    const MemoryType where;
    const DataType type;
    const std::vector<size_t> shape;
    const void* data;
};

}  // namespace fastertransformer

enum { RANKS = 4 };

struct State {
    volatile uint64_t steps[RANKS], begun[RANKS], gone[RANKS], becomes[RANKS], nan_at[RANKS], urgent[RANKS];
};

static State* state;
static int rank, world;

// Waits until the others have come as often.
__attribute__((noipa)) static void all_reduce(const fastertransformer::Tensor& sum)
{
    const uint64_t turn = ++state->begun[rank];
    for (int peer = 0; peer < world; peer++)
        while (!state->gone[peer] && state->begun[peer] < turn)
            usleep(200);
    asm volatile("" ::"r"(&sum) : "memory");
}

__attribute__((noipa)) static void decode_step(uint64_t step, const fastertransformer::Tensor& hidden_states)
{
    asm volatile("" ::"r"(step));
    all_reduce(hidden_states);
    asm volatile("" ::"r"(&hidden_states) : "memory");
}

__attribute__((noipa)) static void checkpoint(uint64_t step) { asm volatile("" ::"r"(step) : "memory"); }

// Only the last rank comes here.
__attribute__((noipa)) static void report(uint64_t step) { asm volatile("" ::"r"(step) : "memory"); }

static void work()
{
    float numbers[6] = {};
    const fastertransformer::Tensor hidden_states{
        fastertransformer::MEMORY_CPU, fastertransformer::TYPE_FP32, {2, 3}, numbers};
    for (uint64_t step = 1;; step++) {
        for (int i = 0; i < 6; i++)
            numbers[i] = float(i);
        if (state->nan_at[rank] == step)
            numbers[4] = NAN;
        if (step % 64 == 0)
            checkpoint(step);
        if (step % 64 == 16 && rank == world - 1)
            report(step);
        if (state->becomes[rank] && step % 64 == 32)
            execl("/bin/sleep", "sleep", "1000", nullptr);
        decode_step(step, hidden_states);
        state->steps[rank] = step;
        usleep(1000);
    }
}

int main(int, char** arguments)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rank = atoi(getenv("RANK"));
    world = atoi(getenv("WORLD_SIZE"));
    const int file = open(arguments[1], O_RDWR | O_CLOEXEC);
    state = static_cast<State*>(mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    signal(SIGURG, [](int) { state->urgent[rank]++; });
    std::thread([] { for (;;) pause(); }).detach();
    printf("ready\n");
    fflush(stdout);
    if (getenv("IN_A_THREAD"))
        std::thread(work).join();
    else
        work();
}
