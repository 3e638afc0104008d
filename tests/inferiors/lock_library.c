// A library whose constructor waits for a thread that needs the loader: the loader's lock is held all the while.
#include <dlfcn.h>
#include <pthread.h>

static void *open_plugin(void *unused) { return dlopen("libutil.so.1", RTLD_NOW); }

__attribute__((constructor)) static void prepare_plugins(void) {
    pthread_t thread;
    if (!pthread_create(&thread, NULL, open_plugin, NULL)) pthread_join(thread, NULL);
}
