// The wall clock of a host that is an hour ahead: LD_PRELOAD.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { AHEAD = 3600 };

int clock_gettime(clockid_t which, struct timespec *time) {
    int failed = syscall(SYS_clock_gettime, which, time);
    if (!failed && which == CLOCK_REALTIME) time->tv_sec += AHEAD;
    return failed;
}

time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict unused) {
    struct timespec precise;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec, now->tv_usec = precise.tv_nsec / 1000;
    return failed;
}
