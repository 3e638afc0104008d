/* Throws RATE exceptions a second (or works without any) and prints once a second since when, and how long one took:
 * the mean, which counts whatever was in between, and the median, which other work on the machine does not reach.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

static const char* const mark = "[FT][ERROR] CUDA runtime error: ";  // what makes it an engine's object file

struct Mine : std::exception {};

__attribute__((noinline)) static void work(const char* kind)
{
    try {
        if (!strcmp(kind, "other-type"))
            throw Mine();
        if (!strcmp(kind, "same-type"))
            throw std::runtime_error("no such key");
        if (!strcmp(kind, "check"))
            throw std::runtime_error(mark);
    } catch (const std::exception&) {
    }
}

int main(int count, char** words)
{
    using clock = std::chrono::steady_clock;
    const char* kind = words[1];
    const double rate = atof(words[2]);
    puts("ready");
    fflush(stdout);
    std::vector<double> each;
    for (;;) {
        auto second = clock::now();
        double busy = 0;
        long done = 0;
        each.clear();
        while (clock::now() - second < std::chrono::seconds(1)) {
            auto begin = clock::now();
            work(kind);
            double took = std::chrono::duration<double>(clock::now() - begin).count();
            busy += took;
            each.push_back(took);
            done++;
            while (rate > 0 && clock::now() - second < std::chrono::duration<double>(done / rate))
                ;
        }
        auto middle = each.begin() + each.size() / 2;
        std::nth_element(each.begin(), middle, each.end());
        printf("%.3f %.3f %.3f\n", std::chrono::duration<double>(second.time_since_epoch()).count(), busy / done * 1e6, *middle * 1e6);
        fflush(stdout);
    }
}
