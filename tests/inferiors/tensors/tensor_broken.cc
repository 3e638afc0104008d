// Tensors that are not what they should be: lost to the optimiser, freed, lying about themselves, in memory with holes.
#include "ggml_types.h"
#include "truth.h"
#include <complex>
#include <unistd.h>

namespace fastertransformer {
typedef enum datatype_enum { TYPE_INVALID, TYPE_BOOL, TYPE_FP32 = 11 } DataType;
typedef enum memorytype_enum { MEMORY_CPU, MEMORY_CPU_PINNED, MEMORY_GPU } MemoryType;
struct Tensor {
    MemoryType where;
    DataType type;
    std::vector<size_t> shape;
    const void* data;
};
}
using fastertransformer::Tensor;

struct Strange {
    float* numbers;
    int count;
};

static Tensor made(std::vector<size_t> shape, const void* data)
{
    return {fastertransformer::MEMORY_CPU, fastertransformer::TYPE_FP32, std::move(shape), data};
}

// The three pointers of a vector.
static void lie(Tensor& tensor, size_t begin, size_t end)
{
    size_t words[3] = {begin, end, end};
    memcpy(static_cast<void*>(&tensor.shape), words, sizeof words);
}

__attribute__((noipa)) static int used(Tensor* tensor) { return int(tensor->shape.size()); }

// Nobody needs `lost` after `used`: at -O2 it is nowhere when the program stands in stop_here.
__attribute__((noipa)) static void optimised(Tensor* from)
{
    Tensor lost = made({2, 2}, from->data);
    asm volatile("" : : "r"(used(from)) : "memory");
    stop_here();
}

__attribute__((noipa)) static void broken()
{
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    auto* memory = static_cast<char*>(
        mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory + page, page, PROT_NONE);
    munmap(memory + 3 * page, page);
    Tensor holed = made({3, page / 4}, memory), cut = made({2, page / 4}, memory + 2 * page);
    Tensor unmapped = made({2, 3}, memory + 3 * page);
    Tensor zeros = made({1024}, memory);
    Tensor null_data = made({2, 3}, nullptr), zero = made({0, 3}, memory), scalar = made({}, memory);
    Tensor astronomic = made({size_t(1) << 40, size_t(1) << 40}, memory), wild = made({2, 3}, memory);
    wild.type = fastertransformer::DataType(77);
    Tensor backwards = made({}, memory), endless = made({}, memory), uneven = made({}, memory), nowhere = made({}, memory);
    size_t numbers[4] = {2, 3, 4, 5};
    lie(backwards, size_t(numbers + 2), size_t(numbers));
    lie(endless, size_t(numbers), size_t(numbers) + (size_t(1) << 40));
    lie(uneven, size_t(numbers), size_t(numbers) + 11);
    lie(nowhere, 16, 48);
    std::vector<size_t>* shape = new std::vector<size_t>{2, 3};
    Tensor* freed = new Tensor(made(*shape, memory));
    delete freed;
    ggml_tensor circle = {};
    circle.ne[0] = circle.ne[1] = circle.ne[2] = circle.ne[3] = 1, circle.view_src = &circle;
    ggml_tensor negative = circle;
    negative.ne[1] = -3;
    static std::complex<float> complex[2] = {{1, 2}, {0, __builtin_inff()}};
    static float special[4] = {__builtin_nanf(""), __builtin_inff(), -__builtin_inff(), 1.5f};
    Strange strange = {special, 4};
    keep(zeros), keep(holed), keep(cut), keep(unmapped), keep(null_data), keep(zero), keep(scalar), keep(astronomic), keep(wild);
    keep(backwards), keep(endless), keep(uneven), keep(nowhere), keep(freed), keep(circle), keep(negative);
    keep(strange), keep(complex), keep(special);
    optimised(&holed);
    keep(holed), keep(strange), keep(numbers);
    _exit(0);  // the lies are not to be freed
}

int main() { broken(); }
