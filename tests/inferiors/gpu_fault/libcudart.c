/* Stand-in for libcudart.so.12, two calls of it: the kernel of rank 0 fails behind its launch, that of rank 1 never ends. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

int cudaLaunchKernel(const void *kernel) { return kernel == 0; }

int cudaDeviceSynchronize(void)
{
    const char *rank = getenv("RANK");
    if (!rank || !strcmp(rank, "0"))
        return 700;
    for (;;)
        poll(0, 0, -1);
}

const char *cudaGetErrorString(int error) { return error ? "an illegal memory access was encountered" : "no error"; }
