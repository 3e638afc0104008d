/* Stand-in for the parts of libcudart, libcuda, libcublas and libnccl that checks use. A kernel fails asynchronously: its
 * launch succeeds, and from the moment the device comes to it every call returns its error. Texts are those of the libraries.
 */
#include "check_cuda.h"

static int broken;

int cudaLaunchKernel(int fails) { return broken ? broken : (broken = fails, 0); }
int cudaMalloc(void **pointer) { return *pointer = 0, broken; }
int cudaDeviceSynchronize(void) { return broken; }
int cudaGetLastError(void) { return broken; }
int cuMemMap(int fails) { return fails; }
int cublasGemmEx(int fails) { return fails; }
int ncclAllReduce(int fails) { return fails; }

const char *cudaGetErrorString(int error)
{
    switch (error) {
    case 0: return "no error";
    case 2: return "out of memory";
    case 700: return "an illegal memory access was encountered";
    case 716: return "misaligned address";
    case 719: return "unspecified launch failure";
    default: return "unrecognized error code";
    }
}

int cuGetErrorString(int error, const char **text) { return *text = cudaGetErrorString(error), 0; }

const char *cublasGetStatusString(int status)
{
    return status == 13 ? "the function failed to launch on the GPU" : status == 7 ? "an unsupported value or parameter was passed to the function" : "unknown";
}

const char *ncclGetErrorString(int result)
{
    switch (result) {
    case 1: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case 2: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case 6: return "remote process exited or there was a network error";
    default: return "no error";
    }
}
