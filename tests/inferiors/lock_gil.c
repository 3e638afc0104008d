// What lock_gil.py calls through ctypes. Built twice: as an extension with a lock of its own, and named libcuda.so.1 as
// a driver that calls destructors of the program with its lock held.
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default"), noinline))

static pthread_mutex_t state = PTHREAD_MUTEX_INITIALIZER;
static sem_t held, go, calling;

// Takes the lock, and calls back once somebody is about to want it.
EXPORTED void release_all(void (*destructor)(void)) {
    pthread_mutex_lock(&state);
    sem_post(&held);
    sem_wait(&go);
    sem_post(&calling);
    destructor();
    pthread_mutex_unlock(&state);
}

EXPORTED void wait_until_held(void) { sem_wait(&held); }

EXPORTED void enqueue(void) {
    sem_post(&go);
    sem_wait(&calling);
    if (write(1, "ready\n", 6) == 6) pthread_mutex_lock(&state);
    pthread_mutex_unlock(&state);
}
