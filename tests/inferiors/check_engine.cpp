/* Checks of CUDA calls as inference engines spell them, on the real runtime without a GPU: every call fails.
 * Does what the lines on standard input say, and answers each with a line.
 */
#include "cuda/cuda_runtime.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#define FRAME __attribute__((noinline, noclone))
#define check_cuda_error(val) fastertransformer::check((val), #val, __FILE__, __LINE__)
#define sync_check_cuda_error() fastertransformer::syncAndCheck(__FILE__, __LINE__)

extern "C" FRAME const char* ncclGetErrorString(int result)
{
    return result == 6 ? "remote process exited or there was a network error" : "no error";
}

#define NCCLCHECK(cmd)                                                                                      \
    do {                                                                                                    \
        int r = cmd;                                                                                        \
        if (r != 0) {                                                                                       \
            printf("Failed, NCCL error %s:%d '%s'\n", __FILE__, __LINE__, ncclGetErrorString(r));           \
            exit(EXIT_FAILURE);                                                                             \
        }                                                                                                   \
    } while (0)

namespace fastertransformer {

enum MemoryType { MEMORY_CPU, MEMORY_CPU_PINNED, MEMORY_GPU };
enum DataType { TYPE_INVALID, TYPE_FP32 = 11 };

struct Tensor {
    const MemoryType where;
    const DataType type;
    const std::vector<size_t> shape;
    const void* data;
    const std::vector<size_t> offsets;
};

template<typename T>
void check(T result, char const* const func, const char* const file, int const line)
{
    if (result)
        throw std::runtime_error(std::string("[FT][ERROR] CUDA runtime error: ") + cudaGetErrorString(result) + " " + file +
                                 ":" + std::to_string(line) + " \n");
}

inline void syncAndCheck(const char* const file, int const line)
{
    static char* level_name = std::getenv("FT_DEBUG_LEVEL");
    if (level_name != nullptr) {
        static std::string level = std::string(level_name);
        if (level == "DEBUG") {
            cudaDeviceSynchronize();
            cudaError_t result = cudaGetLastError();
            if (result)
                throw std::runtime_error(std::string("[FT][ERROR] CUDA runtime error: ") + cudaGetErrorString(result) +
                                         " " + file + ":" + std::to_string(line) + " \n");
        }
    }
}

struct FfnLayer {
    cudaStream_t stream_ = reinterpret_cast<cudaStream_t>(0x7f00);
    FRAME void forward(const Tensor& input)
    {
        void* buffer;
        check_cuda_error(cudaMalloc(&buffer, input.shape[0]));  // LINE forward
    }
    FRAME void synchronize()
    {
        sync_check_cuda_error();  // LINE synchronize
        asm volatile("");
    }
};

FRAME void barrier()
{
    NCCLCHECK(6);  // LINE barrier
}

}  // namespace fastertransformer

namespace unrelated {
struct Mine : std::exception {};
FRAME void throw_mine() { throw Mine(); }
FRAME void throw_error() { throw std::runtime_error("no such key"); }
FRAME void throw_message(const std::string& text) { throw std::runtime_error(text); }
}  // namespace unrelated

static void write_pages(const char* path, size_t size)
{
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, (off_t)size))
        abort();
    char* memory = (char*)mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    memset(memory, 1, size);
}

static void obey(const std::string& word, const std::string& rest)
{
    fastertransformer::FfnLayer layer;
    if (word == "forward") {
        float values[4] = {1, 2, 3, 4};
        fastertransformer::Tensor hidden{fastertransformer::MEMORY_CPU, fastertransformer::TYPE_FP32, {4}, values, {}};
        layer.forward(hidden);
    } else if (word == "synchronize")
        layer.synchronize();
    else if (word == "barrier")
        fastertransformer::barrier();
    else if (word == "mine")
        unrelated::throw_mine();
    else if (word == "error")
        unrelated::throw_error();
    else if (word == "message")
        unrelated::throw_message(rest);
    else if (word == "errors")
        for (int count = atoi(rest.c_str()); count > 0; count--)
            try {
                unrelated::throw_error();
            } catch (const std::exception&) {
            }
    else if (word == "pages")
        write_pages(rest.c_str(), 8 << 20);
    else if (word == "null")
        *(volatile int*)(uintptr_t)strtoul(rest.c_str(), nullptr, 16) = 1;
    else if (word == "abort")
        abort();
}

int main()
{
    puts("ready");
    fflush(stdout);
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        std::string text(line, strcspn(line, "\n")), word = text.substr(0, text.find(' '));
        std::string rest = word.size() < text.size() ? text.substr(word.size() + 1) : "";
        try {
            obey(word, rest);
            printf("done %s\n", word.c_str());
        } catch (const std::exception& error) {
            printf("caught %s\n", error.what());
        }
        fflush(stdout);
    }
    return 0;
}
