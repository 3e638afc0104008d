/* What check_cuda.c gives: numbers instead of the real arguments. */
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
int cudaLaunchKernel(int fails); /* the error that its kernel ends with */
int cudaMalloc(void **pointer);
int cudaDeviceSynchronize(void);
int cudaGetLastError(void);
int cuMemMap(int fails);
int cublasGemmEx(int fails);
int ncclAllReduce(int fails);
const char *cudaGetErrorString(int error);
int cuGetErrorString(int error, const char **text);
const char *cublasGetStatusString(int status);
const char *ncclGetErrorString(int result);
#ifdef __cplusplus
}
#endif
