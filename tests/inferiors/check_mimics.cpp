/* Checks as engines spell them (knowledge/errors/checks.py), each with a failure to order: those that throw, and with -DABORTING
 * those that end the process. Does what the lines on standard input say.
 */
#include "check_cuda.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#define FRAME __attribute__((noinline, noclone))
static const int ILLEGAL = 700, MISALIGNED = 716, LAUNCH = 719;

[[maybe_unused]] static std::string place(const char* file, int line)
{
    return std::string(file) + ":" + std::to_string(line);
}

#ifndef ABORTING

namespace fastertransformer {
FRAME static const char* text_of(int error)
{
    return error == 13 ? "CUBLAS_STATUS_EXECUTION_FAILED" : cudaGetErrorString(error);
}
template<typename T>
void check(T result, char const*, const char* file, int line)
{
    if (result)
        throw std::runtime_error(std::string("[FT][ERROR] CUDA runtime error: ") + text_of(result) + " " + place(file, line) + " \n");
}
#define check_cuda_error(val) check((val), #val, __FILE__, __LINE__)
struct Layer {
    FRAME void forward()
    {
        void* buffer;
        check_cuda_error(cudaMalloc(&buffer));  // LINE passed
        cudaLaunchKernel(ILLEGAL);
        check_cuda_error(cudaDeviceSynchronize());  // LINE ft
    }
    FRAME void again() { check_cuda_error(cudaGetLastError()); }  // LINE again
    FRAME void gemm() { check_cuda_error(cublasGemmEx(13)); }     // LINE cublas
};
}  // namespace fastertransformer

namespace turbomind {  // up to 0.7.3
template<typename T>
void check(T result, char const*, const char* file, int line)
{
    if (result)
        throw std::runtime_error(std::string("[TM][ERROR] CUDA runtime error: ") + cudaGetErrorString(result) + " " + place(file, line) + " \n");
}
struct Model {
    FRAME void forward() { check_cuda_error(MISALIGNED); }  // LINE tm_old
};
}  // namespace turbomind
#undef check_cuda_error

namespace rtp_llm {
FRAME void syncAndCheckInDebug(const char* file, int line)
{
    if (int result = LAUNCH)
        throw std::runtime_error("[ERROR] CUDA runtime error: " + std::string(cudaGetErrorString(result)) + " " + place(file, line));
}
template<typename T>
void check(T result, const char* file, int line)
{
    if (result)
        throw std::runtime_error("[ERROR] CUDA runtime error: " + std::string(cudaGetErrorString(result)) + " " + place(file, line));
}
FRAME void ncclCheck(int result, const char* file, int line)
{
    if (result)
        throw std::runtime_error("[ERROR] NCCL error: " + std::string(ncclGetErrorString(result)) + " " + place(file, line));
}
struct RTPException : std::runtime_error {
    void* mCallstack[128];
    int mNbFrames = 0;
    using std::runtime_error::runtime_error;
};
FRAME void myAssert(const char* file, int line, const std::string& info)
{
    throw RTPException("[ERROR] " + info + " Assertion fail: " + place(file, line));
}
struct Executor {
    FRAME void value() { check(ILLEGAL, __FILE__, __LINE__); }                    // LINE rtp_value
    FRAME void sync() { syncAndCheckInDebug(__FILE__, __LINE__); }                // LINE rtp_sync
    FRAME void nccl() { ncclCheck(ncclAllReduce(6), __FILE__, __LINE__); }        // LINE rtp_nccl
    FRAME void shape() { myAssert(__FILE__, __LINE__, "batch size mismatch"); }   // LINE rtp_assert
};
}  // namespace rtp_llm

namespace tensorrt_llm {
inline namespace _v1 {
namespace common {
struct TllmException : std::runtime_error {
    using std::runtime_error::runtime_error;
};
template<typename T>
void check(T result, char const* func, char const* file, int line)
{
    if (result)
        throw TllmException(std::string("[TensorRT-LLM][ERROR] CUDA runtime error in ") + func + ": " + cudaGetErrorString(result) +
                            " (" + place(file, line) + ")\n1       0x7f00 engine(+0x10)");
}
}  // namespace common
}  // namespace _v1
struct Runtime {
    FRAME void step() { common::check(ILLEGAL, "cudaStreamSynchronize(stream)", __FILE__, __LINE__); }  // LINE trt
};
}  // namespace tensorrt_llm

namespace c10 {
struct Error;
namespace cuda {
void c10_cuda_check_implementation(const int32_t err, const char* file, const char* function, const int line, const bool assertions);
}
}  // namespace c10
#define C10_CUDA_CHECK(expression) c10::cuda::c10_cuda_check_implementation((expression), __FILE__, __func__, __LINE__, true)
namespace vllm {
FRAME void rms_norm()
{
    C10_CUDA_CHECK(0);
    C10_CUDA_CHECK(LAUNCH);  // LINE torch
    C10_CUDA_CHECK(0);
}
FRAME void std_check() { throw std::runtime_error("std_check, " + place(__FILE__, __LINE__) + ", CUDA error: " + cudaGetErrorString(ILLEGAL)); }  // LINE std
FRAME void memory() { throw std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB"); }  // LINE memory
FRAME void process_group()
{
    throw std::runtime_error("NCCL error in: " + place(__FILE__, __LINE__) +  // LINE c10d
                             ", remote process exited or there was a network error, NCCL version 2.27.5\nncclRemoteError: ...");
}
}  // namespace vllm

namespace sglang {
namespace host {
struct PanicError : std::runtime_error {
    std::string m_message;
    explicit PanicError(std::string text): runtime_error(text), m_message(std::move(text)) {}
};
struct Error {  // thrown from a destructor on purpose
    std::ostringstream stream;
    Error(const char* file, int line) { stream << "Failed at " << place(file, line) << ": "; }
    FRAME ~Error() noexcept(false) { throw PanicError(std::move(stream).str()); }
};
}  // namespace host
FRAME void launch()
{
    host::Error(__FILE__, __LINE__).stream << "CUDA error: " << cudaGetErrorString(ILLEGAL) << ". ";  // LINE sglang
}
}  // namespace sglang

namespace kerutils {
struct KUException : std::exception {
    std::string message;
    explicit KUException(std::string text): message(std::move(text)) {}
    const char* what() const noexcept override { return message.c_str(); }
};
FRAME void select() { throw KUException("CUDA error (" + place(__FILE__, __LINE__) + "): " + cudaGetErrorString(MISALIGNED)); }  // LINE ku
}  // namespace kerutils

static void obey(const std::string& word)
{
    fastertransformer::Layer layer;
    rtp_llm::Executor executor;
    if (word == "ft")
        layer.forward();
    else if (word == "again") {  // another thread of the process
        std::exception_ptr thrown;
        std::thread([&] {
            try {
                layer.again();
            } catch (...) {
                thrown = std::current_exception();
            }
        }).join();
        std::rethrow_exception(thrown);
    } else if (word == "cublas")
        layer.gemm();
    else if (word == "tm_old")
        turbomind::Model().forward();
    else if (word == "rtp_value")
        executor.value();
    else if (word == "rtp_sync")
        executor.sync();
    else if (word == "rtp_nccl")
        executor.nccl();
    else if (word == "rtp_assert")
        executor.shape();
    else if (word == "trt")
        tensorrt_llm::Runtime().step();
    else if (word == "torch")
        vllm::rms_norm();
    else if (word == "std")
        vllm::std_check();
    else if (word == "memory")
        vllm::memory();
    else if (word == "c10d")
        vllm::process_group();
    else if (word == "sglang")
        sglang::launch();
    else if (word == "ku")
        kerutils::select();
}

#else  // those that end the process

namespace turbomind {
FRAME void check(int result, char const*, const char* file, int line)  // 0.8 to 0.13
{
    if (result) {
        fprintf(stderr, "[TM][ERROR] CUDA runtime error: %s %s:%d\n", cudaGetErrorString(result), file, line);
        std::abort();
    }
}
[[noreturn]] FRAME void ReportCudaError(int error, const char* file, int line)  // 0.15 and newer
{
    fprintf(stderr, "[TM][FATAL][%s:%d] CUDA error: %s\n", file, line, cudaGetErrorString(error));
    std::abort();
}
[[noreturn]] FRAME void ReportCuDrvError(int error, const char* file, int line)
{
    const char* text;
    cuGetErrorString(error, &text);
    fprintf(stderr, "[TM][FATAL][%s:%d] CUDA driver error: %s\n", file, line, text);
    std::abort();
}
struct Engine {
    FRAME void old() { check(ILLEGAL, "f()", __FILE__, __LINE__); asm volatile(""); }                    // LINE tm_middle
    FRAME void runtime() { ReportCudaError(MISALIGNED, __FILE__, __LINE__); }                            // LINE tm_new
    FRAME void driver() { if (int error = cuMemMap(2)) ReportCuDrvError(error, __FILE__, __LINE__); }    // LINE tm_driver
};
}  // namespace turbomind

extern "C" [[noreturn]] FRAME void ggml_abort(const char* file, int line, const char* format, ...)
{
    va_list words;
    va_start(words, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, words);
    va_end(words);
    std::abort();
}
[[noreturn]] FRAME void ggml_cuda_error(const char* stmt, const char* func, const char* file, int line, const char* msg)
{
    fprintf(stderr, "CUDA error: %s\n  current device: 0, in function %s at %s:%d\n  %s\n", msg, func, file, line, stmt);
    ggml_abort("ggml-cuda.cu", 100, "CUDA error");
}
FRAME static void mul_mat() { ggml_cuda_error("cudaStreamSynchronize(s)", __func__, __FILE__, __LINE__, cudaGetErrorString(LAUNCH)); }  // LINE ggml

namespace fastertransformer {  // RTP-LLM 0.1
FRAME void CheckError(const char* file, int line)
{
    if (int result = LAUNCH) {
        fprintf(stderr, "[FT][ERROR] CUDA runtime error: %s %s:%d\n", cudaGetErrorString(result), file, line);
        std::abort();
    }
}
FRAME static void final_check() { CheckError(__FILE__, __LINE__); asm volatile(""); }  // LINE rtp_final
}  // namespace fastertransformer

namespace vllm {
#define CUDACHECK(cmd)                                                                                       \
    if (int error = cmd) {                                                                                   \
        printf("Failed: Cuda error %s:%d '%s'\n", __FILE__, __LINE__, cudaGetErrorString(error));            \
        exit(EXIT_FAILURE);                                                                                  \
    }
FRAME void exchange() { CUDACHECK(ILLEGAL); }  // LINE vllm_exit
}  // namespace vllm

struct Layer {
    FRAME ~Layer() { throw std::runtime_error("[FT][ERROR] CUDA runtime error: " + std::string(cudaGetErrorString(ILLEGAL)) + " /w/layer.cc:8 \n"); }
};

static void obey(const std::string& word)
{
    turbomind::Engine engine;
    if (word == "tm_middle")
        engine.old();
    else if (word == "tm_new")
        engine.runtime();
    else if (word == "tm_driver")
        engine.driver();
    else if (word == "ggml")
        mul_mat();
    else if (word == "rtp_final")
        fastertransformer::final_check();
    else if (word == "vllm_exit")
        vllm::exchange();
    else if (word == "destructor")
        Layer();
    else if (word == "uncaught")
        std::thread([] { throw std::logic_error("[TensorRT-LLM][ERROR] CUDA runtime error in f(): misaligned address (/w/a.cpp:3)"); }).join();
    else if (word == "other")
        std::thread([] { throw std::logic_error("no such key"); }).join();
}
#endif

int main()
{
    puts("ready");
    fflush(stdout);
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        try {
            obey(std::string(line, strcspn(line, "\n")));
            puts("done");
        } catch (const std::exception& error) {
            printf("caught %s\n", error.what());
        }
        fflush(stdout);
    }
    return 0;
}
