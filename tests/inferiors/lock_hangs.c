// Processes that wait for locks, each in its own way: `lock_hangs NAME [LIBRARY]`. Says `ready` when all threads are in
// their waits, or at work for those that never stop, and stays until it is killed. lock_hangs.py says what each is.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP __attribute__((noinline, noclone))

static pthread_mutex_t locks[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static sem_t items;
static pthread_barrier_t all_have_one;
static atomic_long done;

static void named(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

// Number of the system call that a thread is blocked in; -1 while it is in none.
static long call_of(int tid) {
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    long number = fgets(text, sizeof text, file) && text[0] >= '0' && text[0] <= '9' ? atol(text) : -1;
    fclose(file);
    return number;
}

// Wait until `count` threads beside this one are blocked in a futex call.
static void until_waiting(int count) {
    for (int seen = -1; seen < count; sched_yield()) {
        DIR *folder = opendir("/proc/self/task");
        seen = 0;
        for (struct dirent *entry; (entry = readdir(folder));)
            if (entry->d_name[0] != '.' && atoi(entry->d_name) != gettid())
                seen += call_of(atoi(entry->d_name)) == SYS_futex;
        closedir(folder);
    }
}

static void ready(void) {
    if (write(1, "ready\n", 6) != 6) _exit(1);
}

// Name the process that is to blame, where it is not this one.
static void tell(pid_t child) {
    printf("%d\n", child);
    fflush(stdout);
}

static void *start(void *(*run)(void *), void *argument) {
    static pthread_t threads[16];
    static int count;
    if (pthread_create(&threads[count], NULL, run, argument)) _exit(1);
    return &threads[count++];
}

// --- threads that take what they need in a circle ---

static int members;

STEP static void update_next(long mine) {
    pthread_mutex_lock(&locks[(mine + 1) % members]);
    done++;
    pthread_mutex_unlock(&locks[(mine + 1) % members]);
}

static void *update_both(void *number) {
    long mine = (long)number;
    char name[16];
    snprintf(name, sizeof name, "updater-%ld", mine);
    named(name);
    pthread_mutex_lock(&locks[mine]);
    pthread_barrier_wait(&all_have_one);
    update_next(mine);
    return NULL;
}

static void circle(int count, int protocol, int robust) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutexattr_setrobust(&attributes, robust);
    for (int number = 0; number < count; number++) pthread_mutex_init(&locks[number], &attributes);
    members = count;
    pthread_barrier_init(&all_have_one, NULL, count);
    pthread_t *first = NULL;
    for (long number = 0; number < count; number++) {
        pthread_t *thread = start(update_both, (void *)number);
        first = first ? first : thread;
    }
    until_waiting(count);
    ready();
    pthread_join(*first, NULL);
}

static void two_mutexes(void) { circle(2, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED); }
static void three_mutexes(void) { circle(3, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED); }
static void robust_mutexes(void) { circle(2, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST); }
static void inheriting_mutexes(void) { circle(2, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED); }

// --- a reader-writer lock and a mutex ---

static void *reload(void *unused) {
    named("reload");
    pthread_rwlock_wrlock(&table);
    pthread_barrier_wait(&all_have_one);
    pthread_mutex_lock(&locks[0]);
    return NULL;
}

static void *serve(void *unused) {
    named("serve");
    pthread_mutex_lock(&locks[0]);
    pthread_barrier_wait(&all_have_one);
    pthread_rwlock_rdlock(&table);
    return NULL;
}

static void rwlock(void) {
    pthread_barrier_init(&all_have_one, NULL, 2);
    start(reload, NULL);
    pthread_t *thread = start(serve, NULL);
    until_waiting(2);
    ready();
    pthread_join(*thread, NULL);
}

// --- one thread that takes its lock twice ---

STEP static void notify(void) { pthread_mutex_lock(&locks[0]); }

static void *update(void *unused) {
    named("update");
    pthread_mutex_lock(&locks[0]);
    notify();
    return NULL;
}

static void twice(void) {
    pthread_t *thread = start(update, NULL);
    until_waiting(1);
    ready();
    pthread_join(*thread, NULL);
}

// --- a thread that ended with the lock ---

static void *forget(void *unused) {
    pthread_mutex_lock(&locks[0]);
    return NULL;
}

static void dead_owner(void) {
    pthread_join(*(pthread_t *)start(forget, NULL), NULL);
    pthread_t *thread = start(update, NULL);
    until_waiting(1);
    ready();
    pthread_join(*thread, NULL);
}

// --- a fork while another thread has the lock ---

static void *log_line(void *unused) {
    named("logger");
    pthread_mutex_lock(&locks[0]);
    pthread_barrier_wait(&all_have_one);
    pause();
    return NULL;
}

STEP static void child_work(void) {
    pthread_mutex_lock(&locks[0]);
    _exit(0);
}

static void fork_with_lock(void) {
    pthread_barrier_init(&all_have_one, NULL, 2);
    start(log_line, NULL);
    pthread_barrier_wait(&all_have_one);
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        child_work();
    }
    char path[64], text[16] = "";
    snprintf(path, sizeof path, "/proc/%d/syscall", child);
    for (; strncmp(text, "202 ", 4); sched_yield()) {
        FILE *file = fopen(path, "r");
        if (!file || !fgets(text, sizeof text, file)) _exit(1);
        fclose(file);
    }
    tell(child);
    ready();
    waitpid(child, NULL, 0);
}

// --- two processes, each with a lock in shared memory that the other wants ---

STEP static void exchange(pthread_mutex_t *mine, pthread_mutex_t *theirs, pthread_barrier_t *both) {
    pthread_mutex_lock(mine);
    pthread_barrier_wait(both);
    pthread_mutex_lock(theirs);
}

static void two_processes(void) {
    struct shared {
        pthread_mutex_t locks[2];
        pthread_barrier_t both;
    } *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    for (int number = 0; number < 2; number++) pthread_mutex_init(&shared->locks[number], &attributes);
    pthread_barrierattr_t everybody;
    pthread_barrierattr_init(&everybody);
    pthread_barrierattr_setpshared(&everybody, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->both, &everybody, 2);
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        exchange(&shared->locks[1], &shared->locks[0], &shared->both);
    }
    tell(child);
    ready();
    exchange(&shared->locks[0], &shared->locks[1], &shared->both);
}

// --- the loader's lock: the constructor of LIBRARY waits for a thread that opens another library ---

static const char *library;

static void *load(void *unused) {
    named("load");
    dlopen(library, RTLD_NOW);
    return NULL;
}

static void loader(void) {
    start(load, NULL);
    until_waiting(2);
    ready();
    pause();
}

// --- a wait that somebody else's process should end ---

STEP static void read_reply(int from) {
    char byte;
    ready();
    if (read(from, &byte, 1) < 0) _exit(1);
}

static void stopped_child(int theirs) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    raise(SIGSTOP);
    if (write(theirs, "x", 1) < 0) _exit(1);
    pause();
}

static void stopped_peer(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server, (void *)&address, size) || listen(server, 1)) _exit(1);
    getsockname(server, (void *)&address, &size);
    pid_t child = fork();
    if (!child) {
        int theirs = socket(AF_INET, SOCK_STREAM, 0);
        close(server);
        if (connect(theirs, (void *)&address, size)) _exit(1);
        stopped_child(theirs);
    }
    int ours = accept(server, NULL, NULL);
    waitpid(child, NULL, WUNTRACED);
    tell(child);
    read_reply(ours);
}

static void stopped_pipe_peer(void) {
    int ends[2];
    if (pipe(ends)) _exit(1);
    pid_t child = fork();
    if (!child) {
        close(ends[0]);
        stopped_child(ends[1]);
    }
    close(ends[1]);
    waitpid(child, NULL, WUNTRACED);
    tell(child);
    read_reply(ends[0]);
}

// The writer is gone. The reader has the other end open itself, so that it is never told.
static void dead_peer(void) {
    int ends[2];
    if (pipe(ends)) _exit(1);
    pid_t child = fork();
    if (!child) _exit(0);
    waitpid(child, NULL, 0);
    read_reply(ends[0]);
}

// --- nothing wrong, but for a pool and consumers that nobody can feed ---

__attribute__((noreturn)) static void *contend(void *unused) {
    named("contender");
    for (;;) {
        pthread_mutex_lock(&locks[0]);
        done++;
        usleep(200);
        pthread_mutex_unlock(&locks[0]);
    }
}

static void contended(void) {
    for (int number = 0; number < 4; number++) start(contend, NULL);
    while (done < 20) sched_yield();
    ready();
    contend(NULL);
}

__attribute__((noreturn)) static void *wait_for_work(void *unused) {
    named("pool");
    pthread_mutex_lock(&locks[0]);
    for (;;) pthread_cond_wait(&work, &locks[0]);
}

static pthread_t *workers(int count) {
    pthread_t *thread = NULL;
    for (int number = 0; number < count; number++) thread = start(wait_for_work, NULL);
    until_waiting(count);
    return thread;
}

static void pool(void) {
    pthread_t *thread = workers(4);
    ready();
    pthread_join(*thread, NULL);
}

static void pool_with_orders(void) {
    int ends[2];
    if (pipe(ends)) _exit(1);
    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(write(ends[1], "x", 1) < 0);
    }
    close(ends[1]);
    workers(4);
    read_reply(ends[0]);
}

static void pool_with_housekeeper(void) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    workers(4);
    ready();
    pthread_mutex_lock(&own);
    for (clock_gettime(CLOCK_REALTIME, &until);; until.tv_sec += 3600) pthread_cond_timedwait(&never, &own, &until);
}

__attribute__((noreturn)) static void *take_items(void *from) {
    named("consumer");
    for (;;)
        while (sem_wait(from) && errno == EINTR) {}
}

static void consume(sem_t *from) {
    pthread_t *thread = start(take_items, from);
    start(take_items, from);
    until_waiting(2);
    ready();
    pthread_join(*thread, NULL);
}

static void semaphore(void) {
    sem_init(&items, 0, 0);
    consume(&items);
}

static void post(int number) { sem_post(&items); }

static void semaphore_with_handler(void) {
    sem_init(&items, 0, 0);
    signal(SIGUSR1, post);
    consume(&items);
}

static void shared_semaphore(void) {
    sem_t *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(shared, 1, 0);
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        sem_post(shared);
        _exit(0);
    }
    consume(shared);
}

static const struct {
    const char *name;
    void (*run)(void);
} ROWS[] = {
    {"two-mutexes", two_mutexes},
    {"three-mutexes", three_mutexes},
    {"robust-mutexes", robust_mutexes},
    {"inheriting-mutexes", inheriting_mutexes},
    {"rwlock", rwlock},
    {"twice", twice},
    {"dead-owner", dead_owner},
    {"fork-with-lock", fork_with_lock},
    {"two-processes", two_processes},
    {"loader", loader},
    {"stopped-peer", stopped_peer},
    {"stopped-pipe-peer", stopped_pipe_peer},
    {"dead-peer", dead_peer},
    {"contended", contended},
    {"pool", pool},
    {"pool-with-orders", pool_with_orders},
    {"pool-with-housekeeper", pool_with_housekeeper},
    {"semaphore", semaphore},
    {"semaphore-with-handler", semaphore_with_handler},
    {"shared-semaphore", shared_semaphore},
};

int main(int count, char **arguments) {
    library = count > 2 ? arguments[2] : NULL;
    for (size_t row = 0; count > 1 && row < sizeof ROWS / sizeof *ROWS; row++)
        if (!strcmp(ROWS[row].name, arguments[1])) {
            ROWS[row].run();
            return 0;
        }
    return 2;
}
