/* RTP-LLM since October 2024: its check of every layer asks the engine's logger (Logger.h of 5ecde89d6). "synchronize" on
 * standard input runs one check, "level" says the level. -DOUT_OF_LINE=1 has setBaseLevel as a function, 2 as in 0.2.0
 * (Logger.cc): it hands the level on to the logging library and logs the change.
 */
#include "check_cuda.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
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
#if OUT_OF_LINE == 1
    __attribute__((noinline, used)) void setBaseLevel(uint32_t level) { base_log_level_ = level; }
#elif OUT_OF_LINE == 2
    __attribute__((noinline, used)) void setBaseLevel(const uint32_t level)
    {
        base_log_level_ = level;
        set_level(logger_, base_log_level_);
        log(4, __FILE__, __LINE__, __PRETTY_FUNCTION__, "Set logger level to: [" + names_.at(level) + "]");
    }
#endif
    uint32_t level() const { return base_log_level_; }

private:
    FRAME static void set_level(void* logger, uint32_t level) { printf("%p %u\n", logger, level); }
    FRAME void log(uint32_t level, std::string file, int line, std::string function, std::string text)
    {
        if (level <= base_log_level_)
            printf("[RANK %u][%s:%d][%s] %s\n", rank_, file.c_str(), line, function.c_str(), text.c_str());
    }
    std::string name_;
    void* logger_ = nullptr;
    uint32_t rank_ = 0;
    uint32_t base_log_level_;
    const std::map<const uint32_t, const std::string> names_ = {{2, "ERROR"}, {3, "WARNING"}, {4, "INFO"}, {5, "DEBUG"}};
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
