/* See job.h. */
#define _GNU_SOURCE
#include "job.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* ns. A healthy wait of the demo is far shorter; sleep seen from outside gets twice the time, as it may be any. */
static const uint64_t LASTING = 100000000;

static struct job_state private_state, *state = &private_state;
struct job_rank *job_self = &private_state.ranks[0];
static int this_rank, report_fd = 2;
static pid_t armed_thread;

uint64_t job_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct job_state *job_state(void) { return state; }
int job_rank(void) { return this_rank; }

void job_report(const char *event)
{
    char line[128];
    int size = snprintf(line, sizeof line, "%s %d %d\n", event, this_rank, (int)getpid());
    if (write(report_fd, line, (size_t)size) != size)
        _exit(1); /* nobody listens: the launcher is gone */
}

void job_arm(void)
{
    if (job_self->armed)
        return;
    armed_thread = gettid();
    job_report("ready");
    __atomic_store_n(&job_self->armed, 1, __ATOMIC_RELEASE);
}

void job_report_wait(uint64_t ns)
{
    if (ns < LASTING || (ns != UINT64_MAX && gettid() != armed_thread))
        return;
    if (!__atomic_exchange_n(&job_self->settled, 1, __ATOMIC_ACQ_REL))
        job_report("waiting");
}

/* The armed thread's state letter and its count of times it gave up the CPU by itself; 0 when unreadable. */
static char look_at_armed_thread(unsigned long *switches)
{
    char path[64], line[256], letter = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)armed_thread);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file)) {
        sscanf(line, "State: %c", &letter);
        sscanf(line, "voluntary_ctxt_switches: %lu", switches);
    }
    fclose(file);
    return letter;
}

/* Counts, and reports waits that no stand-in can see: the armed thread asleep in one system call all the time. */
static void *beat(void *unused)
{
    struct job_rank *rank = job_self;
    const char *pace = getenv("DEMO_BEAT_US");
    struct timespec pause = {0, (pace ? atol(pace) : 5000) * 1000};
    unsigned long seen = 0, switches = 0;
    uint64_t since = 0;
    for (;;) {
        __atomic_add_fetch(&rank->heartbeat, 1, __ATOMIC_RELEASE);
        if (rank->armed && !rank->settled) {
            char letter = look_at_armed_thread(&switches);
            if (letter != 'S' || switches != seen || !since)
                since = job_now();
            seen = switches;
            if (job_now() - since > 2 * LASTING && !__atomic_exchange_n(&rank->settled, 1, __ATOMIC_ACQ_REL))
                job_report("waiting");
        }
        nanosleep(&pause, 0);
    }
    return unused;
}

static void *map_state(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct job_state)) < 0) {
        perror(path);
        exit(2);
    }
    void *memory = mmap(0, sizeof(struct job_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    return memory;
}

/* A name that all ranks of one launch, and no others, come to. */
static void derive_path(char *path, size_t size)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID", "MASTER_PORT"};
    const char *job = 0;
    for (unsigned i = 0; !job && i < sizeof names / sizeof *names; i++)
        job = getenv(names[i]);
    if (job)
        snprintf(path, size, "/dev/shm/demo-engine-%s", job);
    else
        snprintf(path, size, "/dev/shm/demo-engine-ppid-%d", (int)getppid());
    for (char *letter = path + strlen("/dev/shm/"); *letter; letter++)
        if (*letter == '/')
            *letter = '_';
}

void job_attach(int rank, int world)
{
    char derived[256];
    const char *path = getenv("DEMO_STATE"), *report = getenv("DEMO_REPORT"), *expected = getenv("DEMO_RANKS_TO_COME");
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a rank never outlives its launcher */
    signal(SIGPIPE, SIG_IGN);
    if (!path)
        derive_path(derived, sizeof derived);
    this_rank = rank;
    state = map_state(path ? path : derived);
    job_self = &state->ranks[rank];
    job_self->pid = (uint64_t)getpid();
    uint64_t come = __atomic_add_fetch(&state->attached, 1, __ATOMIC_ACQ_REL);
    if (!path && come == (uint64_t)(expected ? atoi(expected) : world))
        unlink(derived); /* nobody else will look for it */
    if (report && (report_fd = open(report, O_WRONLY | O_CLOEXEC)) < 0) {
        perror(report);
        exit(2);
    }
    pthread_t thread;
    if (pthread_create(&thread, 0, beat, 0) == 0)
        pthread_setname_np(thread, "demo-heartbeat");
    job_report("attached");
}

void job_pin_up(int note, const char *bytes, uint64_t size)
{
    memcpy(state->board[note].bytes, bytes, size);
    __atomic_store_n(&state->board[note].written, 1, __ATOMIC_RELEASE);
}

void job_read_note(int note, char *bytes, uint64_t size)
{
    while (!__atomic_load_n(&state->board[note].written, __ATOMIC_ACQUIRE))
        usleep(1000);
    memcpy(bytes, state->board[note].bytes, size);
}

struct job_comm *job_find_comm(uint64_t hash)
{
    for (int i = 0; i < JOB_COMMS; i++) {
        uint64_t found = 0;
        if (__atomic_compare_exchange_n(&state->comms[i].hash, &found, hash, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || found == hash)
            return &state->comms[i];
    }
    fprintf(stderr, "demo engine: more than %d communicators\n", JOB_COMMS);
    abort();
}
