#pragma once

#include "../cuda/cublas_v2.h"

#include <mutex>

namespace fastertransformer {

class cublasMMWrapper {
public:
    cublasMMWrapper(cublasHandle_t cublas_handle, cudaStream_t stream) : cublas_handle_(cublas_handle), stream_(stream) {
        cublasSetStream_v2(cublas_handle_, stream_);
    }
    void Gemm(int m, int n, int k, const void* A, void* C);

private:
    cublasHandle_t cublas_handle_;
    cudaStream_t stream_;
    std::mutex mu_;
};

}  // namespace fastertransformer
