/* Extra native threads for a torch rank, and a heartbeat that records how long the process stood still.
 *
 * The heartbeat thread wakes at every full millisecond. When it wakes later than LATE_NS after one, the time in
 * between goes into a ring in a shared file, which the benchmark reads from outside. Layout (little endian, 8 bytes
 * each): beats, how often it was late, the CPU that it is pinned to (-1: none), its real time priority (0: none), then
 * RING pairs of CLOCK_MONOTONIC nanoseconds (from, to). All heartbeats wake at the same moments, on one CPU those of a
 * higher priority first. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define RING 65536
#define PERIOD_NS 1000000
#define LATE_NS 600000

struct record {
    volatile uint64_t beats, late;
    volatile int64_t cpu, priority;
    struct { uint64_t from, to; } ring[RING];
};

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile uint64_t sink;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void *heartbeat(void *argument)
{
    struct record *record = argument;
    prctl(PR_SET_NAME, "heartbeat");
    for (uint64_t time = now();;) {
        uint64_t due = (time / PERIOD_NS + 1) * PERIOD_NS;
        struct timespec at = {due / 1000000000, due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
        time = now();
        if (time > due + LATE_NS) {
            uint64_t i = record->late % RING;
            record->ring[i].from = due;
            record->ring[i].to = time;
            __sync_synchronize();
            record->late++;
        }
        record->beats++;
    }
    return 0;
}

static int wait_condition(void)
{
    pthread_mutex_lock(&mutex);
    for (;;)
        pthread_cond_wait(&never, &mutex);
}
static int wait_epoll(void)
{
    int poll_fd = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, eventfd(0, 0), &event);
    for (;;)
        epoll_wait(poll_fd, &event, 1, -1);
}
static int wait_sleep(void)
{
    for (;;)
        pause();
}
static int wait_mutex(void)
{
    return pthread_mutex_lock(&held);
}
static int busy(void)
{
    struct sched_param idle = {0};
    sched_setscheduler(0, SCHED_IDLE, &idle); /* uses only the CPU that nobody wants */
    for (;;)
        sink++;
}

static int (*const waits[])(void) = {wait_condition, wait_epoll, wait_sleep, wait_mutex, busy};

/* A stack of some depth, as real threads have one. */
__attribute__((noinline)) static int descend(int depth, int which)
{
    volatile char frame[64];
    frame[0] = (char)depth;
    return (depth > 0 ? descend(depth - 1, which) : waits[which]()) + frame[0];
}

static void *work(void *number)
{
    long i = (long)number;
    char name[16];
    snprintf(name, sizeof name, "extra-%ld", i >> 4);
    prctl(PR_SET_NAME, name);
    return (void *)(long)descend(5 + (int)(i >> 4) % 15, (int)(i & 15));
}

static int start(pthread_t *thread, void *(*body)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    return pthread_create(thread, &attributes, body, argument);
}

/* Record late beats in the file `path`, on that CPU and with that real time priority where it is permitted. */
int start_heartbeat(const char *path, int cpu, int priority)
{
    struct sched_param first = {.sched_priority = priority};
    struct record *record;
    pthread_t thread;
    cpu_set_t only;
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || posix_fallocate(file, 0, sizeof *record))
        return -1;
    record = mmap(0, sizeof *record, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (record == MAP_FAILED || start(&thread, heartbeat, record))
        return -1;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    record->cpu = pthread_setaffinity_np(thread, sizeof only, &only) ? -1 : cpu;
    record->priority = pthread_setschedparam(thread, SCHED_FIFO, &first) ? 0 : priority; /* else a noisier measure */
    return 0;
}

/* Start `blocked` waiting threads and `spinning` busy ones. */
int start_threads(int blocked, int spinning)
{
    pthread_t thread;
    pthread_mutex_lock(&held);
    for (long i = 0; i < blocked; i++)
        if (start(&thread, work, (void *)(i << 4 | i % 4)))
            return -1;
    for (long i = 0; i < spinning; i++)
        if (start(&thread, work, (void *)((blocked + i) << 4 | 4)))
            return -1;
    return 0;
}
