// RTP-LLM's tensors: ERA is 1 (v0.1.3, underscored Tensor), 2 (first Buffer), 3 (one-byte enum), 4 (namespace rtp_llm).
#include "truth.h"
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

#if ERA >= 4
#define SPACE rtp_llm
#else
#define SPACE fastertransformer
#endif
#if ERA >= 3
#define UNDERLYING : uint8_t
#else
#define UNDERLYING
#endif

namespace SPACE {

enum DataType UNDERLYING {
    TYPE_INVALID = 0, TYPE_BOOL, TYPE_UINT8, TYPE_UINT16, TYPE_UINT32, TYPE_UINT64, TYPE_INT8, TYPE_INT16, TYPE_INT32,
    TYPE_INT64, TYPE_FP16, TYPE_FP32, TYPE_FP64, TYPE_BYTES, TYPE_BF16, TYPE_FP8_E4M3, TYPE_STR, TYPE_VOID,
    TYPE_QINT8, TYPE_INT4X2, TYPE_QINT4X2, TYPE_QFP8_E4M3,
};

typedef enum memorytype_enum { MEMORY_CPU, MEMORY_CPU_PINNED, MEMORY_GPU } MemoryType;

#if ERA == 1
class Tensor {
public:
    Tensor() : where_(MEMORY_CPU), type_(TYPE_INVALID), data_(nullptr) {}
    Tensor(MemoryType where, DataType type, std::vector<size_t> shape, const void* data)
        : where_(where), type_(type), shape_(std::move(shape)), data_(data) {}
private:
    MemoryType where_;
    DataType type_;
    std::vector<size_t> shape_;
    const void* data_;
};
class TensorMap {
public:
    std::unordered_map<std::string, Tensor> tensor_map_;
};
using Held = Tensor;
#else
class Buffer {
public:
    Buffer(MemoryType where, DataType type, const std::vector<size_t>& shape, void* data)
        : where_(where), type_(type), shape_(shape), data_(data) {}
    Buffer(const Buffer&) = delete;
#if ERA >= 3
    virtual ~Buffer() = default;
#endif
protected:
    MemoryType where_;
    DataType type_;
    std::vector<size_t> shape_;
    void* data_;
    std::function<void(Buffer*)> deleter_ = nullptr;
#if ERA >= 3
    mutable size_t view_count_ = 0;
#endif
#if ERA >= 4
public:
    std::shared_ptr<Buffer> parent_;
#endif
};
#if ERA >= 3
using BufferPtr = std::shared_ptr<Buffer>;
class QBuffer final : public Buffer {
public:
    QBuffer(BufferPtr scales, BufferPtr zeros, DataType type, const std::vector<size_t>& shape, void* data)
        : Buffer(MEMORY_CPU, type, shape, data), scales_(scales), zeros_(zeros) {}
private:
    BufferPtr scales_, zeros_;
};
#else
using BufferPtr = std::unique_ptr<Buffer>;
#endif
using ConstBufferPtr = std::shared_ptr<const Buffer>;
using Held = Buffer;
#endif
}

using namespace SPACE;

static float floats[6] = {0, 1, 2, 3, 4, 5};
static int64_t ids[4] = {-1, 1LL << 40, 7, 8};

__attribute__((noipa)) void forward(Truth& truth, const Held& argument)
{
    const std::vector<int> two_three{2, 3};
    Held plain(MEMORY_CPU, TYPE_FP32, {2, 3}, floats);
    Held big(MEMORY_CPU_PINNED, TYPE_INT64, {4}, ids);
    Held remote(MEMORY_GPU, TYPE_BF16, {4, 4}, device_memory(4096));
    Held none(MEMORY_CPU, TYPE_INVALID, {0}, nullptr);
    auto shared = std::make_shared<Held>(MEMORY_CPU, TYPE_FP32, std::vector<size_t>{2, 3}, floats);
    std::optional<std::reference_wrapper<const Held>> optional = std::cref(argument);
    std::optional<std::reference_wrapper<const Held>> nothing;
    std::vector<std::shared_ptr<Held>> list{shared, shared, nullptr};
    for (const char* name : {"plain", "argument", "shared", "optional", "list[1]"})
        truth.tensor(name, "fp32", two_three, "cpu", counting(6));
    truth.tensor("big", "int64", std::vector<int>{4}, "pinned", {-1, double(1LL << 40), 7, 8});
    truth.says("remote", "it would show zeros");
    truth.says("none", "empty: it has no element type and no memory");
    truth.says("nothing", "empty std::optional");
    truth.collection("list", {"[0]", "[1]", "[2]"});
    truth.fuzz("plain", &plain);
    truth.fuzz("list", &list);
    keep(plain), keep(big), keep(remote), keep(none), keep(shared), keep(optional), keep(nothing), keep(list);
#if ERA == 1
    TensorMap map;
    map.tensor_map_.insert({"key", plain});
    truth.collection("map", {"key"});
    keep(map);
#else
    auto pointer = BufferPtr(new Buffer(MEMORY_CPU, TYPE_FP32, {2, 3}, floats));
    ConstBufferPtr constant = shared;
    truth.tensor("pointer", "fp32", two_three, "cpu", counting(6));
    truth.tensor("constant", "fp32", two_three, "cpu", counting(6));
    keep(pointer), keep(constant);
#endif
#if ERA >= 3
    static unsigned char packed[4] = {0x21, 0xf3, 0x80, 0x47};
    BufferPtr quantised = std::make_shared<QBuffer>(
        shared, nullptr, TYPE_QINT4X2, std::vector<size_t>{2, 2}, packed);
    truth.tensor("quantised", "int4", std::vector<int>{2, 4}, "cpu", {1, 2, 3, -1, 0, -8, 7, 4});
    truth.says("quantised", "\\\"name\\\": \\\"scales\\\"");
    truth.says("quantised", "rtp_llm::QBuffer");
    truth.fuzz("quantised", static_cast<QBuffer*>(quantised.get()));
    keep(quantised);
#endif
#if ERA >= 4
    BufferPtr view = std::make_shared<Buffer>(MEMORY_CPU, TYPE_FP32, std::vector<size_t>{3}, floats + 3);
    view->parent_ = pointer;
    truth.tensor("view", "fp32", std::vector<int>{3}, "cpu", {3, 4, 5});
    truth.says("view", "\\\"name\\\": \\\"parent\\\"");
    BufferPtr ring = std::make_shared<Buffer>(MEMORY_CPU, TYPE_FP32, std::vector<size_t>{3}, floats);
    ring->parent_ = ring;
    truth.tensor("ring", "fp32", std::vector<int>{3}, "cpu", {0, 1, 2});
    keep(view), keep(ring);
#endif
    stop_here();
    keep(plain), keep(argument), keep(optional), keep(nothing);
}

int main(int argc, char** argv)
{
    Truth truth(argc, argv);
    Held argument(MEMORY_CPU, TYPE_FP32, {2, 3}, floats);
    forward(truth, argument);
    return 0;
}
