/* RTP-LLM since October 2024: its check of every layer asks the engine's logger (Logger.h of 5ecde89d6). "synchronize" on
 * standard input runs one check, "level" says the level.
 */
#include "check_cuda.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#define FRAME __attribute__((noinline, noclone))

namespace rtp_llm {

class Logger {
public:
    static Logger& getEngineLogger()
    {
        static Logger engine_logger_("ENGINE");
        return engine_logger_;
    }
    explicit Logger(const std::string& name): name_(name)
    {
        const char* level = std::getenv("LOG_LEVEL");
        base_log_level_ = level && !strcmp(level, "DEBUG") ? 5 : 4;
    }
    FRAME bool isDebugMode() const { return base_log_level_ >= 5; }
#ifdef OUT_OF_LINE
    __attribute__((noinline, used)) void setBaseLevel(uint32_t level) { base_log_level_ = level; }
#endif
    uint32_t level() const { return base_log_level_; }

private:
    std::string name_;
    void* logger_ = nullptr;
    uint32_t rank_ = 0;
    uint32_t base_log_level_;
};

FRAME void syncAndCheckInDebug(const char* file, int line)
{
    if (!Logger::getEngineLogger().isDebugMode())
        return;
    if (int result = cudaDeviceSynchronize())
        throw std::runtime_error(std::string("[ERROR] CUDA runtime error: ") + cudaGetErrorString(result) + " " + file + ":" +
                                 std::to_string(line));
}

}  // namespace rtp_llm

int main()
{
    cudaLaunchKernel(700);
    puts("ready");
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        try {
            if (!strncmp(line, "level", 5))
                printf("level %u\n", rtp_llm::Logger::getEngineLogger().level());
            else
                rtp_llm::syncAndCheckInDebug(__FILE__, __LINE__), puts("done");  // LINE logger
        } catch (const std::exception& error) {
            printf("caught %s\n", error.what());
        }
        fflush(stdout);
    }
    return 0;
}
