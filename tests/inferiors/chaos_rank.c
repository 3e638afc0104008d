// A rank that does what makes a debugger's life hard, and says by a counter in a shared file that it goes on.
//
//   chaos_rank STATE INDEX WAITERS [threads] [forks] [execs] [libraries] [maps] [spins] [deep] [leaves]
//
// STATE is a file of 64 bytes a rank: struct { uint64_t beats, starts, pid, go; }, `beats` goes up every millisecond.
// threads: one is created and ends, some 1,000 a second; forks: children that end at once; execs: the program starts
// itself anew every 0.15 s; libraries: mapped and unmapped all the time; maps: anonymous memory the same way; leaves:
// the main thread ends, so that the process looks like a zombie, until `go`: then it starts anew, and stays.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct heart { volatile uint64_t beats, starts, pid, go, room[4]; } *heart;
static char **arguments;
static volatile uint64_t sink;

static void nap(long microseconds) {
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&time, 0);
}

static void *beat(void *unused) {
    prctl(PR_SET_NAME, "heartbeat");
    for (;; nap(1000)) heart->beats++;
    return unused;
}

static void *brief(void *unused) { nap(300); return unused; }

static void *threads(void *unused) {
    for (;; nap(700)) {
        pthread_t thread;
        if (!pthread_create(&thread, 0, brief, 0)) pthread_detach(thread);
    }
    return unused;
}

static void *forks(void *unused) {
    for (;; nap(3000)) {
        pid_t child = fork();
        if (!child) _exit(0);
        if (child > 0) waitpid(child, 0, 0);
    }
    return unused;
}

static void *execs(void *unused) {
    nap(150000);
    execv(arguments[0], arguments);
    return unused;
}

static void *leaves(void *unused) {
    while (!heart->go) nap(1000);
    arguments[4] = 0;
    execv(arguments[0], arguments);
    return unused;
}

static void *libraries(void *unused) {
    static const char *const names[] = {"libresolv.so.2", "libthread_db.so.1", "libm.so.6", "libanl.so.1"};
    for (unsigned turn = 0;; turn++, nap(4000)) {
        void *library = dlopen(names[turn % 4], RTLD_NOW);
        if (library) nap(100), dlclose(library);
    }
    return unused;
}

static void *maps(void *unused) {
    for (;; nap(500)) {
        char *room = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room != MAP_FAILED) room[4096] = 1, munmap(room, 1 << 20);
    }
    return unused;
}

static void *spins(void *unused) {
    struct sched_param idle = {0};
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &idle);
    for (;;) sink++;
    return unused;
}

__attribute__((noinline)) static int descend(int depth) {
    volatile char room[256];
    room[0] = (char)depth;
    if (!depth) while (heart->pid) pause();
    return depth <= 0 ? 0 : descend(depth - 1) + room[0];
}

static void *deep(void *unused) { descend(8000); return unused; }

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void *wait_condition(void *unused) {
    pthread_mutex_lock(&guard);
    for (;;) pthread_cond_wait(&never, &guard);
    return unused;
}

static void start(void *(*body)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, 0, body, 0)) exit(2);
    pthread_detach(thread);
}

static const struct { const char *name; void *(*body)(void *); } behaviours[] = {
    {"threads", threads}, {"forks", forks}, {"execs", execs}, {"libraries", libraries},
    {"maps", maps},       {"spins", spins}, {"deep", deep},
    {"leaves", leaves},
};

int main(int count, char **words) {
    if (count < 4) return 2;
    arguments = words;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int file = open(words[1], O_RDWR | O_CLOEXEC);
    char *state = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || state == MAP_FAILED) return 2;
    close(file);
    heart = (struct heart *)(state + 64 * atoi(words[2]));
    heart->pid = getpid();
    for (int left = atoi(words[3]); left > 0; left--) start(wait_condition);
    for (int word = 4; word < count; word++)
        for (unsigned row = 0; row < sizeof behaviours / sizeof *behaviours; row++)
            if (!strcmp(words[word], behaviours[row].name)) start(behaviours[row].body);
    heart->starts++;
    start(beat);
    if (count > 4 && !strcmp(words[4], "leaves")) pthread_exit(0);
    for (;;) pause();
}
