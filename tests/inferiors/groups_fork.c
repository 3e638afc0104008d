/* A server that forks its workers without an exec: native_fork FOLDER. Each says who it is, as groups.py does. */
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>

static void stand(const char *folder, const char *role)
{
    char draft[4096], name[4096];
    snprintf(draft, sizeof draft, "%s/.%d", folder, getpid());
    snprintf(name, sizeof name, "%s/%s-%d", folder, role, getpid());
    fclose(fopen(draft, "w"));
    rename(draft, name);
}

int main(int argc, char **argv)
{
    for (int worker = 0; worker < 3; worker++)
        if (fork() == 0) {
            stand(argv[1], "rank");
            for (;;)
                pause();
        }
    stand(argv[1], "other");
    while (wait(NULL) > 0)
        ;
    return 0;
}
