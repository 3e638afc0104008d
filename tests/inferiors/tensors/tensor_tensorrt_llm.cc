// TensorRT-LLM: ERA 1 has the allocator as a member and TensorRT 9's Dims, 2 has it as base and 64-bit Dims, 3 has
// Dims and DataType in an inline namespace of tensorrt_llm.
#include "truth.h"
#include <memory>
#include <unordered_map>

#define DATA_TYPES \
    kFLOAT = 0, kHALF = 1, kINT8 = 2, kINT32 = 3, kBOOL = 4, kUINT8 = 5, kFP8 = 6, kBF16 = 7, kINT64 = 8, kINT4 = 9, \
    kFP4 = 10, kE8M0 = 11

#if ERA == 3
namespace tensorrt_llm { inline namespace _v1 { namespace common {
enum class DataType : int32_t { DATA_TYPES };
struct Dims { int32_t nbDims; int64_t d[8]; };
} } }
namespace types = tensorrt_llm::common;
#else
namespace nvinfer1 {
enum class DataType : int32_t { DATA_TYPES };
#if ERA == 1
struct Dims32 { int32_t nbDims; int32_t d[8]; };
using Dims = Dims32;
#else
struct Dims64 { int32_t nbDims; int64_t d[8]; };
using Dims = Dims64;
#endif
}
namespace types = nvinfer1;
#endif

// As much of torch's tensor as a view of it needs.
namespace c10 {
struct StorageImpl {
    struct { struct { void* data_; } ptr_; } data_ptr_;
    struct { int64_t data_; } size_bytes_;
};
namespace impl {
struct SizesAndStrides {
    size_t size_;
    union { int64_t* outOfLineStorage_; int64_t inlineStorage_[10]; };
};
}
template <typename T> struct intrusive_ptr {
    T* target_;
};
struct Storage {
    intrusive_ptr<StorageImpl> storage_impl_;
};
struct TensorImpl {
    Storage storage_;
    impl::SizesAndStrides sizes_and_strides_;
    int64_t storage_offset_, numel_;
    struct { uint16_t index_; } data_type_;
    struct { int8_t type_, index_; } device_opt_;
};
}
namespace at {
class Tensor {
public:
    c10::intrusive_ptr<c10::TensorImpl> impl_;
};
}

namespace tensorrt_llm {
#if ERA == 3
inline namespace _v1 {
#endif
namespace runtime {
enum class MemoryType : int32_t { kGPU = 0, kCPU = 1, kPINNED = 2, kUVM = 3, kPINNEDPOOL = 4 };

class IBuffer {
public:
    using SharedPtr = std::shared_ptr<IBuffer>;
    virtual void* data() = 0;
    virtual ~IBuffer() = default;
};
class ITensor : virtual public IBuffer {
public:
    using SharedPtr = std::shared_ptr<ITensor>;
    using Shape = types::Dims;
    virtual Shape const& getShape() const = 0;
};

template <typename TDerived, MemoryType memoryType> class BaseAllocator {
public:
    static auto constexpr kMemoryType = memoryType;
};
class HostAllocator : public BaseAllocator<HostAllocator, MemoryType::kCPU> {};
class PinnedAllocator : public BaseAllocator<PinnedAllocator, MemoryType::kPINNED> {};
class UVMAllocator : public BaseAllocator<UVMAllocator, MemoryType::kUVM> {};
class CudaAllocatorAsync : public BaseAllocator<CudaAllocatorAsync, MemoryType::kGPU> { void* mStream = nullptr; };
template <MemoryType memoryType>
class BorrowingAllocator : public BaseAllocator<BorrowingAllocator<memoryType>, memoryType> {
    void* mPtr = nullptr;
    size_t mCapacity = 0;
};

template <typename TAllocator>
class GenericBuffer : virtual public IBuffer
#if ERA >= 2
    , TAllocator
#endif
{
public:
    GenericBuffer(size_t size, types::DataType type, void* buffer)
        : mSize(size), mCapacity(size), mType(type), mBuffer(buffer) {}
    void* data() override { return mSize ? mBuffer : nullptr; }
private:
    size_t mSize, mCapacity;
    types::DataType mType;
#if ERA == 1
    TAllocator mAllocator;
#endif
    void* mBuffer;
};
template <typename TAllocator>
class GenericTensor : virtual public ITensor, public GenericBuffer<TAllocator> {
public:
    GenericTensor(types::Dims dims, size_t size, types::DataType type, void* buffer)
        : GenericBuffer<TAllocator>(size, type, buffer), mDims(dims) {}
    Shape const& getShape() const override { return mDims; }
    void* data() override { return GenericBuffer<TAllocator>::data(); }
private:
    types::Dims mDims;
};
class BufferView : virtual public IBuffer {
public:
    BufferView(IBuffer::SharedPtr buffer, size_t offset, size_t size)
        : mBuffer(buffer), mOffset(offset), mSize(size) {}
    void* data() override { return mBuffer->data(); }
private:
    IBuffer::SharedPtr mBuffer;
    size_t mOffset, mSize;
};
class TensorView : virtual public ITensor, public BufferView {
public:
    TensorView(IBuffer::SharedPtr buffer, size_t offset, size_t size, types::Dims dims)
        : BufferView(buffer, offset, size), mDims(dims) {}
    Shape const& getShape() const override { return mDims; }
    void* data() override { return BufferView::data(); }
private:
    types::Dims mDims;
};
class TorchView : virtual public ITensor {
public:
    TorchView(at::Tensor tensor, types::Dims dims) : mTensor(tensor), mDims(dims), mCapacity(0) {}
    Shape const& getShape() const override { return mDims; }
    void* data() override { return nullptr; }
private:
    at::Tensor mTensor;
    types::Dims mDims;
    size_t mCapacity;
};
using TensorMap = std::unordered_map<std::string, ITensor::SharedPtr>;
}
#if ERA == 3
}
#endif
}
using namespace tensorrt_llm::runtime;

static float floats[6] = {0, 1, 2, 3, 4, 5};

__attribute__((noipa)) void forward(Truth& truth, ITensor const& argument, IBuffer& base)
{
    using Host = GenericTensor<HostAllocator>;
    auto tensor = std::make_shared<Host>(types::Dims{2, {2, 3}}, 6, types::DataType::kFLOAT, floats);
    ITensor::SharedPtr interface = tensor;
    IBuffer::SharedPtr buffer = std::make_shared<GenericBuffer<PinnedAllocator>>(6, types::DataType::kFLOAT, floats);
    IBuffer::SharedPtr part = std::make_shared<BufferView>(buffer, 2, 3);
    ITensor::SharedPtr view = std::make_shared<TensorView>(interface, 2, 4, types::Dims{2, {2, 2}});
    ITensor::SharedPtr view_of_view = std::make_shared<TensorView>(view, 1, 2, types::Dims{1, {2}});
    ITensor::SharedPtr managed = std::make_shared<GenericTensor<UVMAllocator>>(
        types::Dims{1, {6}}, 6, types::DataType::kFLOAT, floats);
    ITensor::SharedPtr wrapped = std::make_shared<GenericTensor<BorrowingAllocator<MemoryType::kCPU>>>(
        types::Dims{1, {6}}, 6, types::DataType::kFLOAT, floats);
    ITensor::SharedPtr remote = std::make_shared<GenericTensor<CudaAllocatorAsync>>(
        types::Dims{1, {6}}, 6, types::DataType::kHALF, device_memory(4096));
    ITensor::SharedPtr scalar = std::make_shared<Host>(types::Dims{0, {}}, 0, types::DataType::kFLOAT, floats);
    ITensor::SharedPtr invalid = std::make_shared<Host>(types::Dims{-1, {}}, 0, types::DataType::kFLOAT, nullptr);
    ITensor::SharedPtr released = std::make_shared<Host>(types::Dims{1, {6}}, 6, types::DataType::kFLOAT, nullptr);
    ITensor::SharedPtr none;
    c10::StorageImpl storage{{{floats}}, {24}};
    c10::TensorImpl impl{{{&storage}}, {1, {}}, 2, 4, {6}, {0, -1}};
    impl.sizes_and_strides_.inlineStorage_[0] = 4, impl.sizes_and_strides_.inlineStorage_[5] = 1;
    ITensor::SharedPtr torch = std::make_shared<TorchView>(at::Tensor{{&impl}}, types::Dims{2, {2, 2}});
    TensorMap map{{"logits", interface}, {"ids", view}};

    const std::vector<int> two_three{2, 3};
    for (const char* name : {"tensor", "interface", "*interface", "argument", "base", "map[\\\"logits\\\"]"})
        truth.tensor(name, "fp32", two_three, "cpu", counting(6));
    truth.tensor("buffer", "fp32", std::vector<int>{6}, "pinned", counting(6));
    truth.tensor("part", "fp32", std::vector<int>{3}, "pinned", {2, 3, 4});
    truth.tensor("view", "fp32", std::vector<int>{2, 2}, "cpu", {2, 3, 4, 5});
    truth.tensor("view_of_view", "fp32", std::vector<int>{2}, "cpu", {3, 4});
    truth.tensor("managed", "fp32", std::vector<int>{6}, "managed", counting(6));
    truth.tensor("wrapped", "fp32", std::vector<int>{6}, "cpu", counting(6));
    truth.collection("map", {"logits", "ids"});
    truth.tensor("torch", "fp32", std::vector<int>{2, 2}, "cpu", {2, 3, 4, 5});
    truth.says("remote", "it would show zeros");
    truth.says("scalar", "rank 0 means no elements");
    truth.says("invalid", "-1 dimensions");
    truth.says("released", "null pointer");
    truth.says("none", "null pointer");
    truth.fuzz("interface", tensor.get());
    truth.fuzz("view", dynamic_cast<TensorView*>(view.get()));
    truth.fuzz("map", &map);
    keep(tensor), keep(interface), keep(buffer), keep(part), keep(view), keep(view_of_view), keep(managed);
    keep(wrapped), keep(remote), keep(scalar), keep(invalid), keep(released), keep(none), keep(map), keep(torch), keep(impl), keep(storage);
    stop_here();
    keep(tensor), keep(argument), keep(base);
}

int main(int argc, char** argv)
{
    Truth truth(argc, argv);
    GenericTensor<HostAllocator> argument(types::Dims{2, {2, 3}}, 6, types::DataType::kFLOAT, floats);
    forward(truth, argument, argument);
    return 0;
}
