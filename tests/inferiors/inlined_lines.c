/* A function with the lines of callees that its debug information does not call inlined, as optimised code has them. */
#include <stdio.h>

static volatile int counted;

static void above(void)
{
    counted++;
}

__attribute__((noipa)) void waits_in_another_file(void)
{
    above();
    counted += 2; /* the last own line */
#line 7 "inlined.h"
    getchar();
#line 18 "inlined_lines.c"
    counted--;
}

__attribute__((noipa)) void waits_above(void)
{
    above();
    counted += 3;
#line 8
    waits_in_another_file();
#line 29
    counted--;
}

int main(void)
{
    puts("ready");
    fflush(stdout);
    waits_above();
    return counted;
}
