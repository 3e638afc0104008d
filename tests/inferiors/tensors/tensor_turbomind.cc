// TurboMind: ERA 1 is the tensor kept from FasterTransformer (lmdeploy to 0.7.3), 2 is turbomind::core (0.8.0 on).
#include "truth.h"
#include <memory>
#include <unordered_map>

static float floats[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

#if ERA == 1
namespace turbomind {
typedef enum datatype_enum {
    TYPE_INVALID, TYPE_BOOL, TYPE_UINT8, TYPE_UINT16, TYPE_UINT32, TYPE_UINT64, TYPE_INT8, TYPE_INT16, TYPE_INT32,
    TYPE_INT64, TYPE_FP16, TYPE_FP32, TYPE_FP64, TYPE_BYTES, TYPE_BF16, TYPE_FP8_E4M3, TYPE_STR, TYPE_VOID,
} DataType;
typedef enum memorytype_enum { MEMORY_CPU, MEMORY_CPU_PINNED, MEMORY_GPU } MemoryType;
struct Tensor {
    MemoryType where;
    DataType type;
    std::vector<size_t> shape;
    void* data;
    std::vector<size_t> offsets = std::vector<size_t>{};
};
struct ManagedTensor {
    Tensor tensor;
    std::shared_ptr<void> data_holder;
};
class TensorMap {
public:
    std::unordered_map<std::string, Tensor> tensor_map_;
};
}

__attribute__((noipa)) void forward(Truth& truth)
{
    turbomind::Tensor plain{turbomind::MEMORY_CPU, turbomind::TYPE_FP32, {3, 4}, floats};
    turbomind::ManagedTensor managed{plain, nullptr};
    turbomind::TensorMap map{{{"a", plain}, {"b", plain}}};
    truth.tensor("plain", "fp32", std::vector<int>{3, 4}, "cpu", counting(12));
    truth.tensor("managed", "fp32", std::vector<int>{3, 4}, "cpu", counting(12));
    truth.tensor("map[\\\"a\\\"]", "fp32", std::vector<int>{3, 4}, "cpu", counting(12));
    truth.collection("map", {"a", "b"});
    truth.fuzz("plain", &plain);
    truth.fuzz("managed", &managed);
    truth.fuzz("map", &map);
    keep(plain), keep(managed), keep(map);
    stop_here();
    keep(plain);
}
#else
namespace turbomind {
constexpr int encode(int sign, int exponent, int mantissa) { return sign << 16 | exponent << 8 | mantissa; }
enum class DataType : int {
    kNull = 0, kBool = 1, kUint2 = 2, kUint4 = 4, kUint6 = 6, kPointer = 7, kUint8 = 8, kUint16 = 16, kUint32 = 32,
    kUint64 = 64, kInt8 = encode(1, 0, 8), kInt16 = encode(1, 0, 16), kInt32 = encode(1, 0, 32),
    kInt64 = encode(1, 0, 64), kFloat4_e2m1 = encode(1, 2, 1), kFloat6_e2m3 = encode(1, 2, 3),
    kFloat6_e3m2 = encode(1, 3, 2), kFloat8_e4m3 = encode(1, 4, 3), kFloat8_e5m2 = encode(1, 5, 2),
    kFloat16 = encode(1, 5, 10), kBfloat16 = encode(1, 8, 7), kFloat32 = encode(1, 8, 23), kFloat64 = encode(1, 11, 52),
    kUint = kUint32, kInt = kInt32, kFloat = kFloat32, kHalf = kFloat16,
};
enum class DeviceType : int { kCPU, kCPUpinned, kDEVICE };

namespace core {
using ssize_t = long;
struct Device { DeviceType type; int id; };
class Layout {
public:
    Layout(std::vector<ssize_t> shape, std::vector<ssize_t> stride) : shape_(shape), stride_(stride), size_(1)
    {
        for (auto length : shape_)
            size_ *= length;
    }
private:
    std::vector<ssize_t> shape_, stride_;
    ssize_t size_;
};
class Buffer {
public:
    Buffer(std::shared_ptr<void> data, ssize_t base, ssize_t size, Device device, DataType dtype)
        : data_(std::move(data)), base_(base), size_(size), device_(device), dtype_(dtype) {}
private:
    std::shared_ptr<void> data_;
    ssize_t base_, size_;
    Device device_;
    DataType dtype_;
};
class Tensor {
public:
    Tensor(Layout layout, Buffer buffer) : layout_(layout), buffer_(buffer) {}
private:
    Layout layout_;
    Buffer buffer_;
};
template <typename T> struct Tensor_ : public Tensor { using Tensor::Tensor; };
template <typename T> struct Buffer_ : public Buffer { using Buffer::Buffer; };
struct TensorMap : public std::unordered_map<std::string, Tensor> {};
template <typename T> struct Ref {
    T& ref_;
};
}
}
using namespace turbomind;
using namespace turbomind::core;

__attribute__((noipa)) void forward(Truth& truth, Ref<Tensor> argument)
{
    auto data = std::shared_ptr<void>(floats, [](void*) {});
    static unsigned char nibbles[4] = {0x10, 0x32, 0xfe, 0x98};
    auto packed = std::shared_ptr<void>(nibbles, [](void*) {});
    Device cpu{DeviceType::kCPU, -1}, gpu{DeviceType::kDEVICE, 3};
    Tensor plain({{3, 4}, {4, 1}}, {data, 0, 12, cpu, DataType::kFloat32});
    Tensor slice({{2, 2}, {4, 1}}, {data, 5, 7, cpu, DataType::kFloat32});
    Tensor turned({{4, 3}, {1, 4}}, {data, 0, 12, cpu, DataType::kFloat});
    Tensor_<float> derived({{3, 4}, {4, 1}}, {data, 0, 12, cpu, DataType::kFloat32});
    Tensor four({{2, 3}, {3, 1}}, {packed, 2, 6, cpu, DataType::kUint4});
    Tensor halfway({{2}, {1}}, {packed, 3, 2, cpu, DataType::kUint4});
    Tensor remote({{2, 3}, {3, 1}},
        {std::shared_ptr<void>(device_memory(4096), [](void*) {}), 0, 6, gpu, DataType::kBfloat16});
    Tensor none({{}, {}}, {nullptr, 0, 0, cpu, DataType::kFloat16});
    Buffer buffer(data, 2, 4, cpu, DataType::kFloat32);
    Buffer_<float> typed(data, 2, 4, {DeviceType::kCPUpinned, 0}, DataType::kFloat32);
    TensorMap map;
    map.emplace("q", plain);
    map.emplace("k", slice);
    const std::vector<int> three_four{3, 4};
    for (const char* name : {"plain", "derived", "argument", "map[\\\"q\\\"]"})
        truth.tensor(name, "fp32", three_four, "cpu", counting(12));
    truth.tensor("slice", "fp32", std::vector<int>{2, 2}, "cpu", {5, 6, 9, 10}, {4, 1}, true);
    truth.tensor("turned", "fp32", std::vector<int>{4, 3}, "cpu", {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, {1, 4}, true);
    truth.tensor("four", "uint4", std::vector<int>{2, 3}, "cpu", {2, 3, 14, 15, 8, 9});
    truth.tensor("buffer", "fp32", std::vector<int>{4}, "cpu", {2, 3, 4, 5});
    truth.tensor("typed", "fp32", std::vector<int>{4}, "pinned", {2, 3, 4, 5});
    truth.collection("map", {"q", "k"});
    truth.says("halfway", "offset: 3 elements");
    truth.says("remote", "on GPU 3 at 0x");
    truth.says("none", "null pointer");
    truth.says("plain.layout_", "this type holds no data");
    truth.fuzz("plain", &plain);
    truth.fuzz("derived", &derived);
    truth.fuzz("buffer", &buffer);
    truth.fuzz("map", &map);
    keep(plain), keep(slice), keep(turned), keep(derived), keep(four), keep(halfway), keep(remote), keep(none), keep(buffer);
    keep(typed), keep(map), keep(argument);
    stop_here();
    keep(plain), keep(argument);
}

void forward(Truth& truth)
{
    auto data = std::shared_ptr<void>(floats, [](void*) {});
    Tensor plain({{3, 4}, {4, 1}}, {data, 0, 12, {DeviceType::kCPU, -1}, DataType::kFloat32});
    forward(truth, Ref<Tensor>{plain});
}
#endif

int main(int argc, char** argv)
{
    Truth truth(argc, argv);
    forward(truth);
    return 0;
}
