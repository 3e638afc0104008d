#include "cuda_utils.h"

#include <cstring>

namespace fastertransformer {

static int stepGelu(void*, uint64_t running_ns) { return running_ns > 100000; }

static int stepAttention(void* args, uint64_t running_ns) {
    long microseconds;
    memcpy(&microseconds, args, sizeof microseconds);
    return running_ns > static_cast<uint64_t>(microseconds) * 1000;
}

static device_kernel addBiasGelu = {"addBiasGelu", stepGelu, 0, 1};
static device_kernel maskedAttention = {"masked_multihead_attention_kernel", stepAttention, sizeof(long), 1};
static device_kernel quantize = {"quantize_kernel", stepGelu, 0, 0};

static void launch(const device_kernel& kernel, void** args, cudaStream_t stream) {
    check_cuda_error(cudaLaunchKernel(&kernel, dim3{96, 1, 1}, dim3{256, 1, 1}, args, 0, stream));
}

ENGINE_FRAME void invokeAddBiasGelu(cudaStream_t stream) { launch(addBiasGelu, nullptr, stream); }

ENGINE_FRAME void invokeMaskedAttention(long microseconds, cudaStream_t stream) {
    void* args[] = {&microseconds};
    launch(maskedAttention, args, stream);
}

ENGINE_FRAME void invokeQuantize(cudaStream_t stream) { launch(quantize, nullptr, stream); }

ENGINE_FRAME void prepareQuantize() {
    constexpr int max_dynamic_shared_memory = 8;
    check_cuda_error(cudaFuncSetAttribute(&quantize, max_dynamic_shared_memory, 96 * 1024));
}

}  // namespace fastertransformer
