// A rank whose program tells what it is run as when somebody starts it to reach the rank: FILE, then waits.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count > 1 && strcmp(words[1], "-I") == 0) {
        // what the rank was to run, and with whose rights this program runs
        char line[256];
        int written = snprintf(line, sizeof line, "%d %d %d %s\n", getuid(), geteuid(), getsid(0) == getpid(), words[count - 1]);
        fwrite(line, 1, written, stderr);
        return 1;
    }
    puts("ready");
    fflush(stdout);
    pause();
}
