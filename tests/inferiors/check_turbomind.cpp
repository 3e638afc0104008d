/* TurboMind's TM_CHECK, TM_CHECK_NOTNULL, TM_CUDA_CHECK and TM_LOG_FATAL, which end the process. -DRELEASE=9 is lmdeploy
 * 0.8.0 to 0.12.3 (core/check.h: the object is the stream alone, the place stands in the text), 13 is 0.13.0 (both), 14
 * is 0.14.0 and newer (the place is a member, the text has none; LogFatalImpl ends the process). Standard input says
 * which one fails.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>

#define FRAME __attribute__((noinline, noclone))

namespace turbomind {
namespace core {

struct Logger {
    static Logger& Instance()
    {
        static Logger logger;
        return logger;
    }
    [[noreturn]] FRAME void LogFatalImpl(const char* file, int line, std::string message)
    {
        std::cerr << "[TM][FATAL][1122.10:00:00.000001][" << file << ":" << line << "] " << message << std::endl;
        std::abort();
    }
#if RELEASE >= 14
    [[noreturn]] FRAME void LogFatalTraced(const char* file, int line, std::string message)
    {
        LogFatalImpl(file, line, std::move(message));
    }
#endif
};

class CheckErrorStream {
public:
    FRAME CheckErrorStream(const char* file, int line, const char* expression);
    FRAME CheckErrorStream(const char* file, int line, const char* expression, std::string* values):
        CheckErrorStream(file, line, expression)
    {
        *stream_ << *values << " ";
    }
    ~CheckErrorStream() { Report(); }
    template<class T>
    CheckErrorStream& operator<<(const T& what)
    {
        *stream_ << what;
        return *this;
    }

private:
    [[noreturn]] FRAME void Report();
    std::ostringstream* stream_;
#if RELEASE >= 13
    const char* file_;
    int line_;
#endif
};

CheckErrorStream::CheckErrorStream(const char* file, int line, const char* expression)
{
    stream_ = new std::ostringstream;
#if RELEASE >= 13
    file_ = file;
    line_ = line;
#endif
#if RELEASE < 14
    *stream_ << strrchr(file, '/') + 1 << "(" << line << "): ";
#endif
    *stream_ << "Check failed: " << expression << " ";
}

void CheckErrorStream::Report()
{
#if RELEASE < 13
    std::cerr << "[TM][FATAL] " << stream_->str() << "\n";
    std::abort();
#else
    Logger::Instance().LogFatalImpl(file_, line_, stream_->str());
#endif
}

[[noreturn]] FRAME void ReportNullError(const char* file, int line, const char* expression)
{
    Logger::Instance().LogFatalImpl(file, line, "'" + std::string(expression) + "' Must be non NULL");
}

}  // namespace core

#if RELEASE >= 14
[[noreturn]] FRAME void ReportCudaError(int, const char* file, int line)
{
    core::Logger::Instance().LogFatalImpl(file, line, "CUDA error: an illegal memory access was encountered");
}
#endif

struct Linear {
    int rows_;
    FRAME void forward(int rows, const char* input)
    {
        if (rows != rows_)
            core::CheckErrorStream(__FILE__, __LINE__, "rows == rows_", new std::string("(7 vs. 3)")) << "of 100% " << rows;  // LINE compared
        puts(input);
    }
    FRAME void load(const char* weights)
    {
        if (!(weights[0] == 'w'))
            core::CheckErrorStream(__FILE__, __LINE__, "weights[0] == 'w'");  // LINE plain
        puts(weights);
    }
    FRAME void bind(const char* weights)
    {
        if (!weights)
            core::ReportNullError(__FILE__, __LINE__, "weights");  // LINE null
        puts(weights);
    }
#if RELEASE >= 14
    FRAME void launch(int error)
    {
        if (error)
            ReportCudaError(error, __FILE__, __LINE__);  // LINE cuda
        puts("launched");
    }
    FRAME void choose(int architecture)
    {
        if (architecture)
            core::Logger::Instance().LogFatalTraced(__FILE__, __LINE__, "no kernel for " + std::to_string(architecture));  // LINE fatal
        puts("chosen");
    }
#endif
};

}  // namespace turbomind

int main(int argc, char** argv)
{
    turbomind::Linear linear{3};
    char line[64];
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        std::string word(line, strcspn(line, "\n"));
        if (word == "compared")
            linear.forward(argc + 6, argv[0]);
        else if (word == "plain")
            linear.load(argv[0]);
        else if (word == "null")
            linear.bind(argv[argc]);
#if RELEASE >= 14
        else if (word == "cuda")
            linear.launch(700 * argc);
        else if (word == "fatal")
            linear.choose(argc);
#endif
    }
    return 0;
}
