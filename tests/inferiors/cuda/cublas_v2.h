/* The part of the cuBLAS API that the demo uses. */
#pragma once

#include "cuda_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cublasContext *cublasHandle_t;
typedef int cublasStatus_t;

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, int transa, int transb, int m, int n, int k,
                                          const void *alpha, const void *a, int atype, int lda, long long stridea,
                                          const void *b, int btype, int ldb, long long strideb, const void *beta, void *c,
                                          int ctype, int ldc, long long stridec, int batch, int compute, int algo);

#ifdef __cplusplus
}
#endif
