/* A Python extension that waits for a thread of its own, which wants the GIL; the declarations are those of Python.h. */
#include <pthread.h>

extern int PyGILState_Ensure(void);
extern void PyGILState_Release(int);

static void *call_back(void *argument)
{
    PyGILState_Release(PyGILState_Ensure());
    return argument;
}

void join_a_thread_that_calls_back(void)
{
    pthread_t helper;
    pthread_create(&helper, NULL, call_back, NULL);
    pthread_join(helper, NULL);
}

#ifndef QUIET
__attribute__((constructor)) static void load(void)
{
    join_a_thread_that_calls_back();
}
#endif
