/* A rank whose names are attacks: of its threads, its functions (patched in the file by the test), its path.
   Prints "ready" when every thread waits. With -DLIBRARY: a library that waits in a function of its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifdef LIBRARY

__attribute__((noinline)) void LIBRARY_PLACEHOLDER_0123456789_0123456789(void)
{
    for (;;)
        pause();
}

#else

/* gdb runs what stands in such a section if the path of the file is safe for it. */
__asm__(".pushsection .debug_gdb_scripts, \"MS\",@progbits,1\n"
        ".byte 4\n"
        ".ascii \"gdb.inlined-script\\n\"\n"
        ".ascii \"import os; open(os.environ['PLANTED'] + '-section', 'w')\\n\"\n"
        ".byte 0\n"
        ".popsection\n");

void LIBRARY_PLACEHOLDER_0123456789_0123456789(void);

static const char *const names[] = {"\"; shell id>p", "\033]0;pwned\007", "\r\n$(id)`id`", "%s%n<b>&amp;", "a\nrank 7"};

static void *waiter(void *name)
{
    prctl(PR_SET_NAME, name);
    LIBRARY_PLACEHOLDER_0123456789_0123456789();
    return name;
}

__attribute__((noinline)) int PROGRAM_PLACEHOLDER_0123456789_0123456789(void)
{
    pthread_t thread;
    for (unsigned number = 0; number < sizeof names / sizeof *names; number++)
        if (pthread_create(&thread, 0, waiter, (void *)names[number]))
            return 1;
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}

int main(void)
{
    prctl(PR_SET_NAME, "\033[2J\"; shell x");
    return PROGRAM_PLACEHOLDER_0123456789_0123456789();
}

#endif
