// Asks for the text of an error all the time, so that a gdb with llm-check on is always at a breakpoint of its own.
//   check_busy ERROR        prints a line every 50 rounds
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

__attribute__((noipa)) const char *cudaGetErrorString(int error)
{
    return error ? "an illegal memory access was encountered" : "no error";
}

int main(int count, char **arguments)
{
    const int error = count > 1 ? atoi(arguments[1]) : 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    puts("ready");
    for (unsigned long round = 1;; round++) {
        cudaGetErrorString(error);
        if (round % 50 == 0)
            puts("round");
        if (fflush(stdout))
            return 1;
    }
}
