/* Stand-in for libcudart.so.12: two frames without a name between each export and the driver. Compiled three times: as
 * the stripped shared library, and statically into libcublas and libnccl, as the real ones carry it.
 */
#define _GNU_SOURCE
#include "cuda_runtime.h"
#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef RUNTIME_IN_NCCL /* what the internals of a static runtime are called */
#define through_context libcudart_static_5c1f0b94d3d27ae6f18a40c79be26d0315e88a47
#define call_driver libcudart_static_b93e6a7714c02fd85e1490aa63c2f7d04b81de90
#endif

#define WORKER static __attribute__((noinline, noclone))
#ifdef RUNTIME_STATIC
#define API __attribute__((visibility("hidden")))
#else
#define API __attribute__((visibility("default")))
#endif

typedef uintptr_t word;

enum entry {
    INIT, HOST_ALLOC, HOST_FREE, ALLOC, FREE, COPY, COPY_ASYNC, GET_KERNEL, LAUNCH, STREAM_CREATE, STREAM_DESTROY,
    STREAM_SYNC, STREAM_QUERY, STREAM_CAPTURING, CAPTURE_MODE, EVENT_CREATE, EVENT_RECORD, EVENT_SYNC, EVENT_QUERY, DEVICE_SYNC, ENTRIES
};

static const char *const names[ENTRIES] = {
    "cuInit", "cuMemHostAlloc", "cuMemFreeHost", "cuMemAlloc", "cuMemFree", "cuMemcpy", "cuMemcpyAsync",
    "cuLibraryGetKernel", "cuLaunchKernelEx", "cuStreamCreate", "cuStreamDestroy", "cuStreamSynchronize",
    "cuStreamQuery", "cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode", "cuEventCreate", "cuEventRecord",
    "cuEventSynchronize", "cuEventQuery", "cuCtxSynchronize",
};

static int (*driver[ENTRIES])(word, word, word, word);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread int last_error, current_device;

static void open_driver(void)
{
    int (*find)(const char *, void **, int, uint64_t, int *) = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library)
        *(void **)&find = dlsym(library, "cuGetProcAddress_v2");
    for (int i = 0; i < ENTRIES; i++)
        if (!find || find(names[i], (void **)&driver[i], 12040, 0, 0)) {
            fprintf(stderr, "stand-in runtime: no %s in libcuda.so.1\n", names[i]);
            abort();
        }
    driver[INIT](0, 0, 0, 0);
}

WORKER int call_driver(enum entry entry, word a, word b, word c, word d)
{
    int result = driver[entry](a, b, c, d);
    if (result && result != CUDA_BUSY)
        last_error = result;
    return result;
}

WORKER int through_context(enum entry entry, word a, word b, word c, word d)
{
    pthread_once(&once, open_driver);
    int result = call_driver(entry, a, b, c, d);
    return result == CUDA_BUSY ? cudaErrorNotReady : result;
}

#define CALL(entry, ...) through_context(entry, __VA_ARGS__)
#define W(value) ((word)(value))

API int cudaDriverGetVersion(int *version) { return *version = 12040, cudaSuccess; }
API int cudaRuntimeGetVersion(int *version) { return *version = 12040, cudaSuccess; }
API int cudaGetDeviceCount(int *count) { return *count = 8, cudaSuccess; }
API int cudaGetDevice(int *device) { return *device = current_device, cudaSuccess; }
API int cudaSetDevice(int device) { return current_device = device, CALL(STREAM_QUERY, 0, 0, 0, 0), cudaSuccess; }
API int cudaDeviceSynchronize(void) { return CALL(DEVICE_SYNC, 0, 0, 0, 0); }
API int cudaMalloc(void **pointer, size_t size) { return CALL(ALLOC, W(pointer), size, 0, 0); }
API int cudaFree(void *pointer) { return CALL(FREE, W(pointer), 0, 0, 0); }
API int cudaMallocHost(void **pointer, size_t size) { return CALL(HOST_ALLOC, W(pointer), size, 0, 0); }
API int cudaHostAlloc(void **pointer, size_t size, unsigned flags) { return CALL(HOST_ALLOC, W(pointer), size, flags, 0); }
API int cudaFreeHost(void *pointer) { return CALL(HOST_FREE, W(pointer), 0, 0, 0); }
API int cudaStreamCreate(cudaStream_t *stream) { return CALL(STREAM_CREATE, W(stream), 0, 0, 0); }
API int cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) { return CALL(STREAM_CREATE, W(stream), flags, 0, 0); }
API int cudaStreamDestroy(cudaStream_t stream) { return CALL(STREAM_DESTROY, W(stream), 0, 0, 0); }
API int cudaStreamSynchronize(cudaStream_t stream) { return CALL(STREAM_SYNC, W(stream), 0, 0, 0); }
API int cudaStreamQuery(cudaStream_t stream) { return CALL(STREAM_QUERY, W(stream), 0, 0, 0); }
API int cudaStreamIsCapturing(cudaStream_t stream, int *status) { return CALL(STREAM_CAPTURING, W(stream), W(status), 0, 0); }
API int cudaThreadExchangeStreamCaptureMode(int *mode) { return CALL(CAPTURE_MODE, W(mode), 0, 0, 0); }
API int cudaEventCreate(cudaEvent_t *event) { return CALL(EVENT_CREATE, W(event), 0, 0, 0); }
API int cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) { return CALL(EVENT_CREATE, W(event), flags, 0, 0); }
API int cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return CALL(EVENT_RECORD, W(event), W(stream), 0, 0); }
API int cudaEventSynchronize(cudaEvent_t event) { return CALL(EVENT_SYNC, W(event), 0, 0, 0); }
API int cudaEventQuery(cudaEvent_t event) { return CALL(EVENT_QUERY, W(event), 0, 0, 0); }
API int cudaFuncGetAttributes(void *attributes, const void *kernel) { return CALL(GET_KERNEL, W(kernel), 0, 0, 0); }
API int cudaFuncSetAttribute(const void *kernel, int attribute, int value) { return CALL(GET_KERNEL, W(kernel), 0, 0, 0); }
API int cudaGetLastError(void) { int error = last_error; return last_error = 0, error; }
API int cudaPeekAtLastError(void) { return last_error; }
API const char *cudaGetErrorName(int error) { return error == 0 ? "cudaSuccess" : error == CUDA_BUSY ? "cudaErrorNotReady" : "cudaErrorUnknown"; }
API const char *cudaGetErrorString(int error) { return error == 0 ? "no error" : error == CUDA_BUSY ? "device not ready" : "unknown error"; }

API int cudaMemcpy(void *target, const void *source, size_t size, int kind)
{
    return CALL(COPY, W(target), W(source), size, 0);
}

API int cudaMemcpyAsync(void *target, const void *source, size_t size, int kind, cudaStream_t stream)
{
    return CALL(COPY_ASYNC, W(target), W(source), size, W(stream));
}

API int cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
    return CALL(LAUNCH, W(kernel), W(args ? args[0] : 0), W(stream), 0);
}

API int cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **args)
{
    return CALL(LAUNCH, W(kernel), W(args ? args[0] : 0), W(config->stream), 0);
}
