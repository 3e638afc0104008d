// A process with many threads in different waits and a heartbeat that sees from inside how long it was stopped.
//
//   capture_threads THREADS BUSY DEPTH [storm|signals|uninterruptible|alternate|calm|exec PROGRAM]
//
// Prints "ready HEARTS" when every thread is where it shall be; HEARTS is the address of
//   struct { uint64_t beats, from_ns, to_ns; } [2]    // the longest gap between two beats, CLOCK_MONOTONIC
// The first heart is the first thread after main, the second heart the last one; "calm" lets them beat once a second,
// where many of these processes would leave no processor to others.
// Ends when its standard input ends. On the line "reset" it clears the gaps, on "exec" it starts itself anew; the answer to
// every line is "done SIGNALS", with the number of real-time signals that it got.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct heart { volatile uint64_t beats, from_ns, to_ns; } hearts[2];
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile uint64_t arrived, sink;
static volatile sig_atomic_t signals_seen;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void arrive(void) { __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST); }

static struct timespec between_beats = {0, 200000};

static void *heartbeat(void *argument) {
    struct heart *heart = argument;
    struct sched_param first = {.sched_priority = 2};  // works for root only; else the gaps are a little longer
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
    prctl(PR_SET_NAME, "heartbeat");
    prctl(PR_SET_TIMERSLACK, 1);
    arrive();
    for (uint64_t last = now();;) {
        nanosleep(&between_beats, 0);
        uint64_t here = now();
        if (here - last > heart->to_ns - heart->from_ns) heart->from_ns = last, heart->to_ns = here;
        heart->beats++;
        last = here;
    }
    return 0;
}

static void wait_condition(void) {
    pthread_mutex_lock(&guard);
    arrive();
    for (;;) pthread_cond_wait(&never, &guard);
}

static void wait_epoll(void) {
    int set = epoll_create1(0), event = eventfd(0, 0);
    struct epoll_event wanted = {.events = EPOLLIN}, got;
    epoll_ctl(set, EPOLL_CTL_ADD, event, &wanted);
    arrive();
    for (;;) epoll_wait(set, &got, 1, -1);
}

static void wait_sleep(void) {
    arrive();
    for (;;) sleep(3600);
}

static void wait_mutex(void) {
    arrive();
    pthread_mutex_lock(&held);
}

static void spin(void) {
    struct sched_param idle = {0};
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &idle);
    arrive();
    for (;;) sink++;
}

static void (*const waits[])(void) = {wait_condition, wait_epoll, wait_sleep, wait_mutex, spin};

__attribute__((noinline)) int descend(long depth, int kind) {
    volatile char room[64];
    room[0] = (char)depth;
    if (depth <= 0) {
        waits[kind]();
        return 0;
    }
    return descend(depth - 1, kind) + room[0];
}

static void *worker(void *argument) {
    long word = (long)argument;
    descend(word >> 4, word & 15);
    return 0;
}

static void start(void *(*body)(void *), void *argument, size_t stack) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack);
    if (pthread_create(&thread, &attributes, body, argument)) {
        perror("pthread_create");
        exit(2);
    }
    pthread_detach(thread);
}

// --- threads that come and go ---

static void *brief(void *unused) { return unused; }

static void *storm(void *unused) {
    arrive();
    for (;;) {
        pthread_t thread;
        if (!pthread_create(&thread, 0, brief, 0)) pthread_join(thread, 0);
        hearts[0].beats++;
    }
    return unused;
}

// --- a thread that counts real-time signals (they queue, none may get lost) ---

static void count_signal(int number) { signals_seen += number == SIGRTMIN; }

static void *signal_catcher(void *unused) {
    sigset_t all;
    sigemptyset(&all);
    sigaddset(&all, SIGRTMIN);
    pthread_sigmask(SIG_UNBLOCK, &all, 0);
    arrive();
    for (;;) pause();
    return unused;
}

// --- a thread in uninterruptible sleep: it waits as vfork() does, until its child ends ---

static void *uninterruptible(void *unused) {
    prctl(PR_SET_NAME, "uninterruptible");
    arrive();
    if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
    }
    return unused;
}

// --- a thread in a signal handler on a stack of its own ---

static void on_other_stack(int number) {
    (void)number;
    wait_sleep();
}

__attribute__((noinline)) void interrupted_here(void) {
    raise(SIGUSR2);
    sink++;
}

static void *alternate(void *unused) {
    stack_t other = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10};
    sigaltstack(&other, 0);
    struct sigaction action = {.sa_handler = on_other_stack, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR2, &action, 0);
    interrupted_here();
    return unused;
}

int main(int count, char **words) {
    long threads = atol(words[1]), busy = atol(words[2]), depth = atol(words[3]), more = 2;
    const char *mode = count > 4 ? words[4] : "";
    char line[256];
    struct sigaction action = {.sa_handler = count_signal};
    sigaction(SIGRTMIN, &action, 0);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &blocked, 0);
    pthread_mutex_lock(&held);
    if (!strcmp(mode, "calm")) between_beats = (struct timespec){1, 0};
    start(heartbeat, &hearts[0], 64 << 10);
    for (long index = 0; index < threads; index++)
        start(worker, (void *)((5 + index % 15) << 4 | (index < busy ? 4 : index % 4)), 128 << 10);
    if (depth) start(worker, (void *)(depth << 4 | 2), 8 << 20), more++;
    if (!strcmp(mode, "storm")) start(storm, 0, 64 << 10), more++;
    if (!strcmp(mode, "signals")) start(signal_catcher, 0, 64 << 10), more++;
    if (!strcmp(mode, "uninterruptible")) start(uninterruptible, 0, 64 << 10), more++;
    if (!strcmp(mode, "alternate")) start(alternate, 0, 256 << 10), more++;
    start(heartbeat, &hearts[1], 64 << 10);
    while (arrived < (uint64_t)(threads + more)) usleep(100);
    usleep(20000);  // from the last step before the wait into the wait
    printf("ready %#lx\n", (unsigned long)hearts);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (!strncmp(line, "reset", 5)) hearts[0].from_ns = hearts[0].to_ns = hearts[1].from_ns = hearts[1].to_ns = 0;
        if (!strncmp(line, "exec", 4)) execv(words[0], (char *[]){words[0], "3", "0", "0", 0});
        printf("done %lu\n", (unsigned long)signals_seen);
        fflush(stdout);
    }
    _exit(0);
}
