// What every C++ program of the live sets has: `PROGRAM NAME FOLDER` runs one of its functions, and that tells by files in
// the folder which process has come to its place.
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <unistd.h>

namespace live {

inline std::string folder;

inline void at(const char *role, pid_t pid = getpid())
{
    std::string draft = folder + "/." + std::to_string(getpid()), name = folder + "/" + role;
    std::ofstream(draft) << pid;
    rename(draft.c_str(), name.c_str());
}

inline int run(int argc, char **argv, const std::map<std::string, int (*)()> &programs)
{
    if (argc < 3)
        return 2;
    folder = argv[2];
    return programs.at(argv[1])();
}

} // namespace live
