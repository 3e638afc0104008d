// What a program holds, said by itself as JSON lines: the tests compare what the debugger says.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <vector>

// The debugger stops here; the caller's frame has the tensors.
extern "C" __attribute__((noipa)) void stop_here()
{
    asm volatile("" ::: "memory");
}

// Keeps an object in memory whatever the optimisation.
template <typename T>
__attribute__((noipa)) void keep(T& object)
{
    asm volatile("" : : "r"(&object) : "memory");
}

// Objects that the fuzz test overwrites.
struct Object
{
    const char* expression;
    void* address;
    unsigned long size;
};
Object objects[64];
int object_count = 0;

// Memory without access, as the address ranges that CUDA reserves.
inline void* device_memory(size_t size)
{
    return mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

class Truth
{
public:
    explicit Truth(int argc, char** argv) : file_(argc > 1 ? fopen(argv[1], "w") : stdout)
    {
        if (!file_)
            abort();
    }

    // One tensor that `expression` means. Values are those of all elements in row-major order; none when unreadable.
    template <typename Shape>
    void tensor(const char* expression, const char* dtype, const Shape& shape, const char* where,
        const std::vector<double>& values, const std::vector<long>& strides = {}, bool has_strides = false)
    {
        fprintf(file_, "{\"expression\": \"%s\", \"dtype\": \"%s\", \"where\": \"%s\", \"shape\": ", expression, dtype,
            where);
        numbers(shape);
        if (has_strides)
        {
            fprintf(file_, ", \"strides\": ");
            numbers(strides);
        }
        fprintf(file_, ", \"values\": ");
        numbers(values);
        fprintf(file_, "}\n");
        fflush(file_);
    }

    // An expression whose answer has this text among its problems, notes or reasons.
    void says(const char* expression, const char* text)
    {
        fprintf(file_, "{\"expression\": \"%s\", \"says\": \"%s\"}\n", expression, text);
        fflush(file_);
    }

    // A map, vector or struct of tensors: the keys in any order.
    void collection(const char* expression, const std::vector<std::string>& keys)
    {
        fprintf(file_, "{\"expression\": \"%s\", \"keys\": [", expression);
        for (size_t i = 0; i < keys.size(); ++i)
            fprintf(file_, "%s\"%s\"", i ? ", " : "", keys[i].c_str());
        fprintf(file_, "]}\n");
        fflush(file_);
    }

    template <typename T>
    void fuzz(const char* expression, T* object)
    {
        objects[object_count++] = Object{expression, (void*) object, sizeof(T)};
    }

private:
    template <typename List>
    void numbers(const List& list)
    {
        fprintf(file_, "[");
        bool first = true;
        for (auto number : list)
        {
            fprintf(file_, "%s%.17g", first ? "" : ", ", (double) number);
            first = false;
        }
        fprintf(file_, "]");
    }

    FILE* file_;
};

// fp16 of small integers and halves, exactly.
inline uint16_t half(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, 4);
    if (!(bits & 0x7fffffff))
        return uint16_t(bits >> 16);
    return uint16_t((bits >> 16 & 0x8000) | ((((bits >> 23) & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
}

inline std::vector<double> counting(int count, double start = 0)
{
    std::vector<double> numbers;
    for (int i = 0; i < count; ++i)
        numbers.push_back(start + i);
    return numbers;
}
