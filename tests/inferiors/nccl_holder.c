/* Maps a real libnccl without a GPU and holds blocks of memory that look like communicators of it.
 *
 *   nccl_holder LIBRARY SIZE WHERE OFFSET:WIDTH:VALUE... [ / SIZE WHERE OFFSET:WIDTH:VALUE... ]...
 *
 * WIDTH is 1, 4 or 8 bytes, or p: a pointer to a 32-bit VALUE. WHERE is `stack` (a frame has a pointer to it), `hidden`
 * (no pointer anywhere) or `argument` (handed to a function as ncclComm* comm). Prints the addresses, then "ready".
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 16

struct ncclHeld;  // an incomplete type: only the library knows what lies behind it

static int fill(char* block, const char* member) {
    char width;
    unsigned long long offset, value;
    if (sscanf(member, "%llu:%c:%llu", &offset, &width, &value) != 3)
        return 0;
    if (width == 'p') {
        uint32_t* flag = malloc(sizeof *flag);
        *flag = (uint32_t)value;
        memcpy(block + offset, &flag, sizeof flag);
    } else {
        memcpy(block + offset, &value, (size_t)(width - '0'));
    }
    return 1;
}

/* What calls left on the stack below this frame would lead to a block that nothing should lead to. */
__attribute__((noinline)) static void wipe(void) {
    volatile char left[64 << 10];
    for (size_t i = 0; i < sizeof left; i++)
        left[i] = 0;
}

/* Answers every line on stdin, until stdin ends. */
static void serve(void) {
    char line[64];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        fputs(line, stdout);
        fflush(stdout);
    }
}

__attribute__((noinline)) int ncclAllReduce(struct ncclHeld* comm) {
    serve();
    return comm != NULL;
}

int main(int argc, char** argv) {
    char* volatile onStack[MOST] = {0};
    struct ncclHeld* argument = NULL;
    int count = 0, at = 2;
    if (strcmp(argv[1], "none") && !dlopen(argv[1], RTLD_LAZY)) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    while (at + 1 < argc && count < MOST) {
        char* block = calloc(1, (size_t)atoll(argv[at]));
        const char* where = argv[at + 1];
        for (at += 2; at < argc && fill(block, argv[at]); at++) {
        }
        at++;
        printf("%p\n", (void*)block);
        if (!strcmp(where, "stack"))
            onStack[count++] = block;
        else if (!strcmp(where, "argument"))
            argument = (struct ncclHeld*)block;
        block = NULL;
        wipe();
    }
    if (argument)
        return ncclAllReduce(argument) ? 0 : 1;
    serve();
    return onStack[0] != NULL;
}
