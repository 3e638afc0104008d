// Variables of every kind that a capture may meet. Says "ready" and waits until stdin is closed.
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace engine {
enum class Mode { Prefill = 1, Decode = 2 };
enum Flags { kNone = 0, kBusy = 4 };
struct Comm { int rank; const char *name; Comm *next; };
}

static const char *last_bytes_of_a_page(bool ended)
{
    long page = sysconf(_SC_PAGESIZE);
    char *start = static_cast<char *>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    munmap(start + page, page);
    memset(start, 'e', page);
    if (ended)
        start[page - 1] = 0;
    return start + page - 4;
}

__attribute__((noinline)) void look(const std::string &text, engine::Comm *comm, int &&moved)
{
    int negative = -5;
    unsigned long large = ~0ul;
    bool yes = true;
    char letter = 'A';
    double ratio = 2.5;
    const char *words = "hello";
    const char *nothing = nullptr;
    char buffer[16] = "in place";
    std::string longer(300, 'x');
    engine::Mode mode = engine::Mode::Decode;
    engine::Mode strange = static_cast<engine::Mode>(77);
    engine::Comm plain = {1, "one", comm};
    engine::Comm *null_comm = nullptr;
    int *bad_pointer = reinterpret_cast<int *>(0x10);
    const char *bad_text = reinterpret_cast<const char *>(0x10);
    // Texts at the end of a page; behind it nothing is mapped.
    const char *at_edge = last_bytes_of_a_page(true);
    const char *runs_out = last_bytes_of_a_page(false);
    const char *no_end = runs_out - 1000;
    printf("ready\n");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    printf("%d%lu%d%c%f%s%p%s%s%d%d%d%p%p%p%s%s%s%s%d\n", negative, large, yes, letter, ratio, words,
           static_cast<const void *>(nothing), buffer, longer.c_str(), int(mode), int(strange), plain.rank,
           static_cast<void *>(null_comm), static_cast<void *>(bad_pointer), static_cast<const void *>(bad_text), at_edge,
           no_end, runs_out, text.c_str(), moved);
}

int main()
{
    engine::Comm inner = {7, "inner", nullptr};
    engine::Comm outer = {6, "outer", &inner};
    look("given", &outer, 9);
}
