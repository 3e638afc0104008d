/* Stand-in for libcuda.so.1. As in the driver no worker has a name: they are handed out by cuGetProcAddress_v2 only, and
 * the library is stripped. The device is a thread (named and waiting like the driver's own helpers) that runs the heads
 * of all streams; whoever waits for the device really waits for that.
 *
 * DEMO_WAIT says how a host thread waits: spin (clock), yield (sched_yield), poll (blocking sync, asleep).
 * DEMO_FAULT breaks it: "sticky" (every call returns 700), "capture" (a stream is being captured), "copy" (asynchronous
 * copies never return), "busy" (they return and never end).
 */
#define _GNU_SOURCE
#include "../job.h"
#include "device.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define WORKER static __attribute__((noinline, noclone))
#define EXPORT __attribute__((visibility("default")))

enum { STREAMS = 16, BLOCKS = 64, GUARD = 1 << 16, DRIVER_VERSION = 12040, CUDA_HANDLE = 400, CUDA_STICKY = 700, CUDA_CAPTURE = 906 };

typedef uintptr_t word;

struct launch {
    struct device_kernel *kernel;
    uint64_t begun; /* when it came to the head of its stream, 0: not yet */
    char args[DEVICE_ARGS];
};

/* `submitted` and `finished` only grow; the launches between them wait in the ring. */
struct stream {
    int used, capturing, error; /* the last two by standin_stream_is */
    unsigned flags;
    uint64_t submitted, finished;
    struct launch ring[DEVICE_QUEUE];
};

struct event {
    struct stream *stream;
    uint64_t position;
};

/* What a host thread waits for: one stream's position, or room in its queue, or (no stream) all that was submitted. */
struct goal {
    struct stream *stream;
    uint64_t position[STREAMS];
};

/* Device memory: a reservation that the CPU cannot read, and where its content really is. */
struct block {
    word base;
    size_t size;
    char *content;
};

static struct stream streams[STREAMS]; /* [0] is the default stream */
static struct block blocks[BLOCKS];
static int block_count;
static __thread void *context; /* of this thread, as soon as it has called anything */
static enum { NO_FAULT, STICKY, CAPTURE, COPY_HANGS, COPY_BUSY } fault;
static pthread_mutex_t api_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static int doorbell = -1, completion = -1;
static enum { SPIN, YIELD, POLL } wait_mode;
static int launch_blocking, eager_loading;

/* ---- the device ---- */

static int run_heads(void)
{
    int busy = 0;
    pthread_mutex_lock(&queue_lock);
    for (int i = 0; i < STREAMS; i++) {
        struct stream *stream = &streams[i];
        while (stream->finished < stream->submitted) {
            struct launch *head = &stream->ring[stream->finished % DEVICE_QUEUE];
            if (!head->begun)
                head->begun = job_now();
            if (!head->kernel->step(head->args, job_now() - head->begun)) {
                busy = 1;
                break;
            }
            __atomic_add_fetch(&stream->finished, 1, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&queue_lock);
    return busy;
}

WORKER int sleep_on(int fd, int timeout_ms)
{
    struct pollfd ready = {fd, POLLIN, 0};
    uint64_t count;
    int found = poll(&ready, 1, timeout_ms);
    return found > 0 ? (int)read(fd, &count, sizeof count) : 0;
}

WORKER void serve(int fd, int device)
{
    for (;;) {
        int busy = device ? run_heads() : 0;
        sleep_on(fd, !device ? 100 : busy ? 2 : -1);
    }
}

WORKER void *event_handler(void *fd)
{
    serve((int)(intptr_t)fd, 0);
    return 0;
}

WORKER void *device_thread(void *fd)
{
    serve((int)(intptr_t)fd, 1);
    return 0;
}

static void start_helper(void *(*body)(void *), int fd, const char *name)
{
    pthread_t thread;
    pthread_create(&thread, 0, body, (void *)(intptr_t)fd);
    pthread_setname_np(thread, name);
}

static void start_driver(void)
{
    const char *mode = getenv("DEMO_WAIT"), *blocking = getenv("CUDA_LAUNCH_BLOCKING"), *loading = getenv("CUDA_MODULE_LOADING");
    const char *broken = getenv("DEMO_FAULT");
    fault = !broken ? NO_FAULT : !strcmp(broken, "sticky") ? STICKY : !strcmp(broken, "capture") ? CAPTURE
            : !strcmp(broken, "copy") ? COPY_HANGS : !strcmp(broken, "busy") ? COPY_BUSY : NO_FAULT;
    wait_mode = mode && !strcmp(mode, "yield") ? YIELD : mode && !strcmp(mode, "poll") ? POLL : SPIN;
    launch_blocking = blocking && atoi(blocking);
    eager_loading = loading && !strcmp(loading, "EAGER");
    streams[0].used = 1;
    doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    completion = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    start_helper(event_handler, completion, "cuda-EvtHandlr");
    start_helper(device_thread, doorbell, "cuda00001400006");
}

/* ---- waiting ---- */

static int reached(const struct goal *goal)
{
    for (int i = 0; i < STREAMS; i++) {
        if (goal->stream && goal->stream != &streams[i])
            continue;
        if (__atomic_load_n(&streams[i].finished, __ATOMIC_ACQUIRE) < goal->position[i])
            return 0;
    }
    return 1;
}

WORKER void wait_turn(void)
{
    struct timespec now;
    struct pollfd ready = {completion, POLLIN, 0};
    switch (wait_mode) {
    case POLL:
        poll(&ready, 1, 20);
        break;
    case YIELD:
        sched_yield();
        break;
    case SPIN:
        for (int i = 0; i < 500; i++)
            clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    }
}

WORKER int wait_loop(const struct goal *goal)
{
    uint64_t since = job_now();
    while (!reached(goal)) {
        wait_turn();
        JOB_WAITED(job_now() - since);
    }
    return CUDA_OK;
}

WORKER int wait_stream(struct stream *stream, uint64_t position)
{
    struct goal goal = {stream, {0}};
    goal.position[stream - streams] = position;
    return wait_loop(&goal);
}

WORKER int drain_context(void)
{
    struct goal goal = {0, {0}};
    for (int i = 0; i < STREAMS; i++)
        goal.position[i] = __atomic_load_n(&streams[i].submitted, __ATOMIC_ACQUIRE);
    return wait_loop(&goal);
}

/* Every call passes the driver's lock; most leave it before they wait. */
static void pass_lock(void)
{
    context = &streams;
    pthread_mutex_lock(&api_lock);
    pthread_mutex_unlock(&api_lock);
}

static struct stream *stream_of(word handle) { return handle > 2 ? (struct stream *)handle : &streams[0]; }

static uint64_t submitted(const struct stream *stream) { return __atomic_load_n(&stream->submitted, __ATOMIC_ACQUIRE); }

/* ---- memory: allocating pinned memory, and freeing, waits for the whole device with the lock held ---- */

WORKER int map_pinned(void **pointer, size_t size)
{
    int result = drain_context();
    *pointer = mmap(0, size ? size : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return *pointer == MAP_FAILED ? 2 : result;
}

WORKER int host_alloc(word pointer, word size, word flags, word unused)
{
    pthread_mutex_lock(&api_lock);
    int result = map_pinned((void **)pointer, size);
    pthread_mutex_unlock(&api_lock);
    return result;
}

WORKER int release_memory(word pointer)
{
    int result = drain_context();
    /* `pointer` stays mapped: its size is not kept, and the demo frees a handful of blocks */
    return result;
}

WORKER int memory_free(word pointer, word b, word c, word d)
{
    if (!pointer)
        return CUDA_OK;
    pthread_mutex_lock(&api_lock);
    int result = release_memory(pointer);
    pthread_mutex_unlock(&api_lock);
    return result;
}

WORKER int memory_alloc(word pointer, word size, word c, word d)
{
    pass_lock();
    void *base = mmap(0, size + GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return 2;
    int number = __atomic_fetch_add(&block_count, 1, __ATOMIC_ACQ_REL);
    if (number < BLOCKS) /* the demo's buffers beyond have no content */
        blocks[number] = (struct block){(word)base, size, calloc(1, size ? size : 1)};
    *(void **)pointer = base;
    return CUDA_OK;
}

/* Where the bytes at an address really are; 0 for a range that reaches beyond a block of the device, or lies right behind one. */
static char *bytes_at(word address, size_t size)
{
    for (int i = 0; i < BLOCKS; i++) {
        struct block *block = &blocks[i];
        if (block->content && address >= block->base && address < block->base + block->size + GUARD)
            return address + size <= block->base + block->size ? block->content + (address - block->base) : 0;
    }
    return (char *)address;
}

static int move_bytes(word target, word source, size_t size)
{
    char *to = bytes_at(target, size), *from = bytes_at(source, size);
    if (!to || !from)
        return CUDA_INVALID;
    memcpy(to, from, size);
    return CUDA_OK;
}

WORKER int memory_copy(word target, word source, word size, word d)
{
    pass_lock();
    int result = drain_context();
    return result ? result : move_bytes(target, source, size);
}

WORKER int never_return(void)
{
    for (;;)
        poll(0, 0, 1000);
}

WORKER int memory_copy_async(word target, word source, word size, word stream)
{
    pass_lock();
    if (fault == COPY_HANGS)
        return never_return();
    return fault == COPY_BUSY ? CUDA_OK : move_bytes(target, source, size);
}

/* ---- kernels ---- */

WORKER int load_module(struct device_kernel *kernel)
{
    int result = drain_context();
    kernel->loaded = 1;
    return result;
}

WORKER int find_kernel(word kernel, word b, word c, word d)
{
    struct device_kernel *wanted = (struct device_kernel *)kernel;
    pthread_mutex_lock(&api_lock);
    int result = wanted->loaded || eager_loading ? CUDA_OK : load_module(wanted);
    pthread_mutex_unlock(&api_lock);
    return result;
}

/* The room of launch number n is free when launch n - DEVICE_QUEUE has finished. */
WORKER int wait_for_room(struct stream *stream)
{
    uint64_t next = submitted(stream) + 1;
    return next > DEVICE_QUEUE ? wait_stream(stream, next - DEVICE_QUEUE) : CUDA_OK;
}

WORKER int push_launch(struct stream *stream, struct device_kernel *kernel, const void *args)
{
    int result = wait_for_room(stream);
    pthread_mutex_lock(&queue_lock);
    struct launch *slot = &stream->ring[stream->submitted % DEVICE_QUEUE];
    slot->kernel = kernel;
    slot->begun = 0;
    if (args)
        memcpy(slot->args, args, kernel->args_size);
    __atomic_add_fetch(&stream->submitted, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&queue_lock);
    eventfd_write(doorbell, 1);
    return result;
}

WORKER int launch_kernel(word kernel, word args, word stream, word d)
{
    int result = find_kernel(kernel, 0, 0, 0);
    pthread_mutex_lock(&api_lock);
    result |= push_launch(stream_of(stream), (struct device_kernel *)kernel, (void *)args);
    pthread_mutex_unlock(&api_lock);
    if (launch_blocking)
        result |= wait_stream(stream_of(stream), submitted(stream_of(stream)));
    return result;
}

/* ---- streams, events, the context ---- */

WORKER int stream_create(word handle, word flags, word c, word d)
{
    pass_lock();
    for (int i = 1; i < STREAMS; i++)
        if (!__atomic_exchange_n(&streams[i].used, 1, __ATOMIC_ACQ_REL)) {
            streams[i].flags = flags;
            *(struct stream **)handle = &streams[i];
            return CUDA_OK;
        }
    return 2;
}

WORKER int stream_destroy(word handle, word b, word c, word d)
{
    pass_lock();
    stream_of(handle)->used = 0;
    return CUDA_OK;
}

WORKER int stream_synchronize(word handle, word b, word c, word d)
{
    pass_lock();
    return wait_stream(stream_of(handle), submitted(stream_of(handle)));
}

/* As the driver does, it looks into what a handle points to, and where that points. */
static int is_stream(const struct stream *stream)
{
    if (stream >= streams && stream < streams + STREAMS)
        return stream->used ? stream->error : CUDA_HANDLE;
    int *const volatile *inside = (int *const volatile *)stream;
    return *inside && *(volatile int *)*inside ? CUDA_HANDLE : CUDA_HANDLE;
}

WORKER int stream_query(word handle, word b, word c, word d)
{
    pass_lock();
    struct stream *stream = stream_of(handle);
    if (fault == COPY_BUSY)
        return CUDA_BUSY;
    if (stream->capturing)
        abort(); /* the capture is spoiled */
    if (is_stream(stream))
        return is_stream(stream);
    return __atomic_load_n(&stream->finished, __ATOMIC_ACQUIRE) < submitted(stream) ? CUDA_BUSY : CUDA_OK;
}

/* As the driver says it of the legacy stream while another one captures. */
WORKER int stream_is_capturing(word handle, word status, word c, word d)
{
    pass_lock();
    int problem = is_stream(stream_of(handle));
    *(int *)status = problem ? 0 : stream_of(handle)->capturing;
    return fault == CAPTURE ? CUDA_CAPTURE : fault == STICKY ? CUDA_STICKY : problem;
}

WORKER int exchange_capture_mode(word mode, word b, word c, word d)
{
    static __thread int present;
    int wanted = *(int *)mode;
    *(int *)mode = present;
    present = wanted;
    return CUDA_OK;
}

WORKER int event_create(word handle, word flags, word c, word d)
{
    struct event *event = calloc(1, sizeof *event);
    event->stream = &streams[0];
    *(struct event **)handle = event;
    return CUDA_OK;
}

WORKER int event_record(word handle, word stream, word c, word d)
{
    struct event *event = (struct event *)handle;
    pass_lock();
    event->stream = stream_of(stream);
    event->position = submitted(event->stream);
    return CUDA_OK;
}

WORKER int event_synchronize(word handle, word b, word c, word d)
{
    struct event *event = (struct event *)handle;
    pass_lock();
    return wait_stream(event->stream, event->position);
}

WORKER int event_query(word handle, word b, word c, word d)
{
    struct event *event = (struct event *)handle;
    pass_lock();
    if (event->stream->capturing)
        abort(); /* the capture is spoiled */
    return event->stream->error ? event->stream->error : __atomic_load_n(&event->stream->finished, __ATOMIC_ACQUIRE) < event->position ? CUDA_BUSY : CUDA_OK;
}

WORKER int context_synchronize(word a, word b, word c, word d)
{
    pass_lock();
    return drain_context();
}

WORKER int initialise(word a, word b, word c, word d)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_driver);
    return CUDA_OK;
}

static const struct {
    const char *name;
    int (*worker)(word, word, word, word);
} workers[] = {
    {"cuInit", initialise},
    {"cuMemHostAlloc", host_alloc},
    {"cuMemFreeHost", memory_free},
    {"cuMemAlloc", memory_alloc},
    {"cuMemFree", memory_free},
    {"cuMemcpy", memory_copy},
    {"cuMemcpyAsync", memory_copy_async},
    {"cuLibraryGetKernel", find_kernel},
    {"cuLaunchKernelEx", launch_kernel},
    {"cuStreamCreate", stream_create},
    {"cuStreamDestroy", stream_destroy},
    {"cuStreamSynchronize", stream_synchronize},
    {"cuStreamQuery", stream_query},
    {"cuStreamIsCapturing", stream_is_capturing},
    {"cuThreadExchangeStreamCaptureMode", exchange_capture_mode},
    {"cuEventCreate", event_create},
    {"cuEventRecord", event_record},
    {"cuEventSynchronize", event_synchronize},
    {"cuEventQuery", event_query},
    {"cuCtxSynchronize", context_synchronize},
};

/* The driver's own names, for callers from outside; the workers behind them have none. */
#define STREAM(name, parameter, value)                                     \
    EXPORT int name(word handle, parameter)                                \
    {                                                                      \
        pass_lock();                                                       \
        return is_stream(stream_of(handle)) ? CUDA_HANDLE : (value, CUDA_OK); \
    }
STREAM(cuStreamGetFlags, unsigned *flags, *flags = stream_of(handle)->flags)
STREAM(cuStreamGetPriority, int *priority, *priority = -(int)(stream_of(handle) - streams) % 3)
STREAM(cuStreamGetId, uint64_t *id, *id = 1 + (stream_of(handle) - streams))
STREAM(cuStreamGetDevice, int *device, *device = 0)
EXPORT int cuStreamIsCapturing(word stream, int *status) { return stream_is_capturing(stream, (word)status, 0, 0); }
EXPORT int cuStreamQuery(word stream) { return stream_query(stream, 0, 0, 0); }
EXPORT int cuStreamCreate(word *stream, unsigned flags) { return stream_create((word)stream, flags, 0, 0); }
EXPORT int cuStreamDestroy_v2(word stream) { return stream_destroy(stream, 0, 0, 0); }
EXPORT int cuEventQuery(word event) { return event_query(event, 0, 0, 0); }
EXPORT int cuMemcpyDtoHAsync_v2(void *to, word from, size_t size, word stream) { return memory_copy_async((word)to, from, size, stream); }
EXPORT int cuThreadExchangeStreamCaptureMode(int *mode) { return exchange_capture_mode((word)mode, 0, 0, 0); }

EXPORT int cuDriverGetVersion(int *version)
{
    *version = DRIVER_VERSION;
    return CUDA_OK;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    for (unsigned i = 0; i < sizeof workers / sizeof *workers; i++)
        if (!strcmp(workers[i].name, name)) {
            *function = (void *)workers[i].worker;
            if (status)
                *status = 0;
            return CUDA_OK;
        }
    return 500; /* CUDA_ERROR_NOT_FOUND */
}

EXPORT int cuCtxGetCurrent(void **current)
{
    *current = context;
    return CUDA_OK;
}

/* Of the stand-in alone: a stream is being captured, or every call about it fails. */
EXPORT void standin_stream_is(word stream, int capturing, int error)
{
    stream_of(stream)->capturing = capturing;
    stream_of(stream)->error = error;
}

/* Of the stand-in alone: how many streams were created and not destroyed. */
EXPORT int standin_streams_in_use(void)
{
    int count = 0;
    for (int i = 1; i < STREAMS; i++)
        count += __atomic_load_n(&streams[i].used, __ATOMIC_ACQUIRE);
    return count;
}
