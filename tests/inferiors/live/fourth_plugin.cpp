// A backend with a thread, which closes its device by one more library when the backend is unloaded.
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

static pthread_t worker;
static sem_t stop;

static void *serve(void *)
{
    sem_wait(&stop);
    if (void *device = dlopen("libutil.so.1", RTLD_NOW))
        dlclose(device);
    return nullptr;
}

__attribute__((constructor)) static void start_backend()
{
    sem_init(&stop, 0, 0);
    pthread_create(&worker, nullptr, serve, nullptr);
}

__attribute__((destructor)) static void stop_backend()
{
    sem_post(&stop);
    pthread_join(worker, nullptr);
}
