/* Checks, allocator and kernels, as in an inference engine. */
#pragma once

#include "../cuda/cuda_runtime.h"
#include "../cuda/device.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

// A function that must stay a frame of its own when the compiler optimises.
#define ENGINE_FRAME __attribute__((noinline, noclone))

#define FT_LOG_DEBUG(...)                       \
    do {                                        \
        if (fastertransformer::debug_level())   \
            fprintf(stderr, __VA_ARGS__);       \
    } while (0)
#define check_cuda_error(val) fastertransformer::check((val), #val, __FILE__, __LINE__)

namespace fastertransformer {

inline bool debug_level() {
    static const bool on = getenv("FT_DEBUG_LEVEL") && std::string(getenv("FT_DEBUG_LEVEL")) == "DEBUG";
    return on;
}

template<typename T>
void check(T result, char const* const, const char* const file, int const line) {
    if (result)
        throw std::runtime_error(std::string("[FT][ERROR] CUDA runtime error: ") + cudaGetErrorString(result) + " " + file +
                                 ":" + std::to_string(line) + " \n");
}

enum class AllocatorType { CUDA };

template<AllocatorType>
class Allocator {
public:
    ENGINE_FRAME void* malloc(size_t size, bool is_host = false) const {
        void* pointer = nullptr;
        if (is_host)
            check_cuda_error(cudaMallocHost(&pointer, size));
        else
            check_cuda_error(cudaMalloc(&pointer, size));
        return pointer;
    }

    ENGINE_FRAME void free(void** pointer, bool is_host = false) const {
        if (is_host)
            check_cuda_error(cudaFreeHost(*pointer));
        else
            check_cuda_error(cudaFree(*pointer));
        *pointer = nullptr;
    }
};

// kernels.cc: launchers of simulated kernels. The first two are loaded at start, the last when somebody needs it.
void invokeAddBiasGelu(cudaStream_t stream);
void invokeMaskedAttention(long microseconds, cudaStream_t stream);
void invokeQuantize(cudaStream_t stream);
void prepareQuantize();

}  // namespace fastertransformer
