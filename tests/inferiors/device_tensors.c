/* Holds 4 x 6 floats, and zeros up to a MiB, on the stand-in device. The main thread waits in a read() that can be begun
   again, a second one beats (asleep in what cannot), and answers lines of stdin: "streams" by how many the driver has in use,
   "beats" by the number of beats, others by themselves.
   device_tensors [lock]: a third thread holds the driver's lock for ever, behind a kernel that never ends.
   device_tensors [lonely]: the thread that filled the tensor has ended; no other has used the device.
   device_tensors [none]: the CUDA runtime is loaded and never used. */
#define _GNU_SOURCE
#include "cuda/cuda_runtime.h"
#include "cuda/device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

float *device; /* what a test looks at */
static volatile long beats;
static pthread_barrier_t started;

__attribute__((noinline)) long add(long a, int b) { return a + b; }
__attribute__((noinline)) int crash(void) { return *(volatile int *)8; }
__attribute__((noinline)) int stuck(void)
{
    for (;;)
        nanosleep(&(struct timespec){1, 0}, 0);
}

static int never(void *args, uint64_t running) { return (void)args, (void)running, 0; }
static struct device_kernel endless = {"endless", never, 0, 1};

static void *beat(void *unused)
{
    for (;; beats++)
        nanosleep(&(struct timespec){0, 2000000}, 0);
    return unused;
}

static pid_t holder;

static void *hold_lock(void *unused)
{
    void *pinned;
    holder = gettid();
    cudaLaunchKernel(&endless, (dim3){1, 1, 1}, (dim3){1, 1, 1}, 0, 0, 0);
    pthread_barrier_wait(&started);
    cudaMallocHost(&pinned, 4096);
    return unused;
}

/* Until the holder is in poll(), which it calls with the lock in its hands. */
static void until_it_waits(void)
{
    char path[64], call[8] = "";
    sprintf(path, "/proc/self/task/%d/syscall", holder);
    while (strncmp(call, "7 ", 2)) {
        FILE *file = fopen(path, "r");
        if (!file || !fgets(call, sizeof call, file))
            call[0] = 0;
        if (file)
            fclose(file);
    }
}

static void *fill(void *unused)
{
    float numbers[24];
    for (int i = 0; i < 24; i++)
        numbers[i] = i / 2.f;
    cudaSetDevice(0);
    cudaMalloc((void **)&device, 1 << 20);
    cudaMemcpy(device, numbers, sizeof numbers, cudaMemcpyHostToDevice);
    return unused;
}

int main(int argc, char **argv)
{
    char line[256];
    pthread_t thread;
    const char *what = argc > 1 ? argv[1] : "";
    setenv("DEMO_WAIT", "poll", 1);
    pthread_create(&thread, 0, beat, 0);
    if (!strcmp(what, "lonely")) {
        pthread_create(&thread, 0, fill, 0);
        pthread_join(thread, 0);
    } else if (strcmp(what, "none"))
        fill(0);
    if (!strcmp(what, "lock")) {
        pthread_barrier_init(&started, 0, 2);
        pthread_create(&thread, 0, hold_lock, 0);
        pthread_barrier_wait(&started);
        until_it_waits();
    }
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        int (*streams)(void) = 0;
        void *driver = strcmp(line, "streams\n") ? 0 : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (driver)
            *(void **)&streams = dlsym(driver, "standin_streams_in_use");
        if (streams)
            printf("%d\n", streams());
        else if (!strcmp(line, "beats\n"))
            printf("%ld\n", beats);
        else
            fputs(line, stdout);
        fflush(stdout);
    }
    return add(0, 0) || argc > 99 ? crash() + stuck() : 0;
}
