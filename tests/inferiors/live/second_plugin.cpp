// A backend whose constructor starts a thread which loads a further library, and joins it.
#include <dlfcn.h>
#include <thread>

static void load_helper()
{
    dlopen("libutil.so.1", RTLD_NOW);
}

__attribute__((constructor)) static void start_backend()
{
    std::thread helper(load_helper);
    helper.join();
}
