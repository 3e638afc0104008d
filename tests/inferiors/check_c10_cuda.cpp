/* Stand-in for libc10_cuda.so: the check that torch calls for successes too. It forgets file and line of its caller. */
#include "check_cuda.h"

#include <cstdint>
#include <exception>
#include <string>

namespace c10 {

struct Error : std::exception {
    std::string msg_, what_;
    explicit Error(const std::string& text): msg_(text), what_(text) {}
    const char* what() const noexcept override { return what_.c_str(); }
};
struct AcceleratorError : Error {
    int32_t code;
    AcceleratorError(int32_t number, const std::string& text): Error(text), code(number) {}
};

namespace cuda {
void c10_cuda_check_implementation(const int32_t err, const char*, const char*, const int, const bool)
{
    if (err == 0)
        return;
    throw AcceleratorError(err, std::string("CUDA error: ") + cudaGetErrorString(err) +
                                    "\nCUDA kernel errors might be asynchronously reported at some other API call\n");
}
}  // namespace cuda
}  // namespace c10
