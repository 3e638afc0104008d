/* Stand-in for libcublas.so.12: stripped, with its own static runtime. A handle allocates its workspace when it is first
 * used, not when it is created: that first call waits for the device.
 */
#include "cublas_v2.h"
#include "device.h"

#include <stdlib.h>

#define WORKER static __attribute__((noinline, noclone))
#define API __attribute__((visibility("default")))

struct cublasContext {
    cudaStream_t stream;
    void *workspace;
};

static int gemm_step(void *args, uint64_t running_ns)
{
    return running_ns > 200000;
}

static struct device_kernel gemm = {"ampere_sgemm_128x64_nn", gemm_step, 0, 0};

WORKER int make_workspace(cublasHandle_t handle) { return cudaHostAlloc(&handle->workspace, 1 << 16, 0) ? 3 : 0; }

WORKER int prepare(cublasHandle_t handle) { return handle->workspace ? 0 : make_workspace(handle) << 0; }

WORKER int run_gemm(cublasHandle_t handle)
{
    static const dim3 one = {1, 1, 1};
    int result = prepare(handle);
    return result ? result : cudaLaunchKernel(&gemm, one, one, 0, 0, handle->stream);
}

API int cublasCreate_v2(cublasHandle_t *handle) { return (*handle = calloc(1, sizeof **handle)) ? 0 : 3; }

API int cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) { return handle->stream = stream, 0; }

API int cublasDestroy_v2(cublasHandle_t handle) { return free(handle), 0; }

API int cublasGemmStridedBatchedEx(cublasHandle_t handle, int transa, int transb, int m, int n, int k, const void *alpha,
                                   const void *a, int atype, int lda, long long stridea, const void *b, int btype, int ldb,
                                   long long strideb, const void *beta, void *c, int ctype, int ldc, long long stridec,
                                   int batch, int compute, int algo)
{
    return run_gemm(handle);
}
