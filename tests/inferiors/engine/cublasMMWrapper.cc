#include "cublasMMWrapper.h"

#include "cuda_utils.h"

namespace fastertransformer {

ENGINE_FRAME void cublasMMWrapper::Gemm(int m, int n, int k, const void* A, void* C) {
    constexpr int f32 = 0, f32_compute = 68, default_algorithm = -1;
    const float one = 1, zero = 0;
    std::lock_guard<std::mutex> lock(mu_);
    check_cuda_error(cublasGemmStridedBatchedEx(cublas_handle_, 0, 0, m, n, k, &one, A, f32, m, 0, nullptr, f32, k, 0, &zero, C,
                                                f32, m, 0, 1, f32_compute, default_algorithm));
}

}  // namespace fastertransformer
