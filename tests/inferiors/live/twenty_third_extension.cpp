// A part of engines in C++ for Python, twenty-third set: results of many runs are loaded, and what is odd is logged.
#include <fstream>
#include <future>
#include <string>
#include <vector>

namespace {

struct Realization {
    double total = 0;
    bool complete = false;
};

// One value in each line, and how many there are to be.
Realization load(const std::string &path, int expected, int number, int (*warn)(int))
{
    Realization loaded;
    std::ifstream file(path);
    int count = 0;
    for (double value; file >> value; ++count)
        loaded.total += value;
    loaded.complete = count == expected;
    if (!loaded.complete)
        warn(number);
    return loaded;
}

} // namespace

// All of them at once, each as a future.
extern "C" int load_ensemble(const char *folder, int size, int expected, int (*warn)(int))
{
    std::vector<std::future<Realization>> futures;
    for (int number = 0; number < size; ++number) {
        std::string path = std::string(folder) + "/realization-" + std::to_string(number);
        futures.push_back(std::async(std::launch::async, load, path, expected, number, warn));
    }
    int complete = 0;
    for (auto &future : futures)
        complete += future.get().complete;
    return complete;
}
