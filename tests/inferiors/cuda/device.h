/* What the stand-in libraries agree on: a simulated kernel, and the codes they return. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { DEVICE_ARGS = 64, DEVICE_QUEUE = 64, CUDA_OK = 0, CUDA_INVALID = 1, CUDA_BUSY = 600 };

/* `step` is called by the device's own thread from time to time while the kernel is at the head of its stream, with the
 * launch's copy of the arguments and the time it has been running; it returns 1 when the kernel has finished. */
struct device_kernel {
    const char *name;
    int (*step)(void *args, uint64_t running_ns);
    size_t args_size;
    int loaded; /* its module is on the device */
};
