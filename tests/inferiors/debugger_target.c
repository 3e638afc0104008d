/* Answers every line on stdin by the same line, so that a test can see whether it runs.
   debugger_target WHAT NUMBER: "threads" that sleep, a "recursion" so deep, or "plain". Says "ready" when it is there. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum { ncclInt8 = 0, ncclFloat16 = 6, ncclFloat32 = 7 } ncclDataType_t;
typedef enum { ncclSum = 0, ncclMax = 2 } ncclRedOp_t;
typedef struct ncclComm { unsigned long commHash; int rank, nRanks; unsigned long opCount; } *ncclComm_t;

static void answer(void)
{
    char line[256];
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        fputs(line, stdout);
        fflush(stdout);
    }
}

/* Optimised, the arguments are gone once `answer` is called, and the call site cannot tell the volatile count. */
__attribute__((noinline)) int ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                            ncclRedOp_t op, ncclComm_t comm, void *stream)
{
    answer();
    (void)count, (void)datatype, (void)op, (void)comm, (void)stream;
    return sendbuff == recvbuff;
}

__attribute__((noinline)) int recurse(int depth)
{
    volatile int kept = depth;
    if (depth == 0)
        answer();
    else
        recurse(depth - 1);
    return kept;
}

static pthread_barrier_t all_started;

static void *sleeper(void *unused)
{
    pthread_barrier_wait(&all_started);
    for (;;)
        pause();
    return unused;
}

static void start_threads(int count)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&all_started, NULL, count + 1);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, sleeper, NULL))
            exit(3);
    }
    pthread_barrier_wait(&all_started);
}

int main(int argc, char **argv)
{
    int number = argc > 2 ? atoi(argv[2]) : 0;
    struct ncclComm comm = {0xabc, 3, 8, 42};
    char buffer[8];
    volatile size_t count = 4096;
    if (argc > 1 && !strcmp(argv[1], "recursion"))
        return recurse(number);
    if (argc > 1 && !strcmp(argv[1], "threads"))
        start_threads(number);
    return ncclAllReduce(buffer, buffer, count, ncclFloat16, ncclMax, &comm, stdin);
}
