// torch's tensor at the offsets of RELEASE: 201 (2.1), 204 (2.4), 206 (2.6 to 2.12), 213 (2.13 on). Built with debug
// information it is read by members, without by the table; addresses are then given on the second line of the truth.
#include "truth.h"
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <unordered_map>

namespace c10 {
enum class ScalarType : int8_t { Byte, Char, Short, Int, Long, Half, Float, Double };
enum class DeviceType : int8_t { CPU = 0, CUDA = 1, Meta = 14 };
struct Device {
    DeviceType type_;
    int8_t index_;
};
struct intrusive_ptr_target {
    virtual ~intrusive_ptr_target() = default;
#if RELEASE == 201
    std::atomic<size_t> refcount_{1}, weakcount_{1};
#else
    std::atomic<uint32_t> refcount_{1}, weakcount_{1};
#endif
};
template <typename T, typename Null = T> struct intrusive_ptr {
    T* target_;
};
namespace detail {
struct UniqueVoidPtr {
    void* data_;
    std::unique_ptr<void, void (*)(void*)> ctx_;
};
}
struct DataPtr {
    detail::UniqueVoidPtr ptr_;
    Device device_;
};
struct SymInt {
    int64_t data_;
};
struct StorageImpl : intrusive_ptr_target {
    DataPtr data_ptr_{{nullptr, {nullptr, [](void*) {}}}, {DeviceType::CPU, -1}};
    SymInt size_bytes_{0};
    bool size_bytes_is_heap_allocated_ = false, resizable_ = true, received_cuda_ = false, no_data_ = false;
#if RELEASE >= 213
    void* materialize_fn_ = nullptr;
#endif
    void* allocator_ = nullptr;
    void* pyobj_slot_ = nullptr;
#if RELEASE >= 206 || RELEASE == 201
    void* extra_meta_ = nullptr;
#endif
};
struct Storage {
    intrusive_ptr<StorageImpl> storage_impl_;
};
namespace impl {
struct SizesAndStrides {
    size_t size_;
    union {
        int64_t* outOfLineStorage_;
        int64_t inlineStorage_[10];
    };
};
struct PyObjectSlot {
#if RELEASE >= 213
    std::atomic<void*> pyobj_{nullptr};
#else
    std::atomic<void*> pyobj_interpreter_{nullptr};
    void* pyobj_ = nullptr;
#endif
};
}
struct VariableVersion {
    void* version_counter_ = nullptr;
};
}
namespace caffe2 {
struct TypeMeta {
    uint16_t index_;
};
}
namespace c10 {
struct TensorImpl : intrusive_ptr_target {
    Storage storage_{{nullptr}};
    std::unique_ptr<char> autograd_meta_{}, extra_meta_{};
    VariableVersion version_counter_;
    impl::PyObjectSlot pyobj_slot_;
    impl::SizesAndStrides sizes_and_strides_{};
    int64_t storage_offset_ = 0, numel_ = 1;
    caffe2::TypeMeta data_type_{0};
    std::optional<Device> device_opt_;
    bool is_contiguous_ : 1;
    uint64_t key_set_ = 0;
};
struct UndefinedTensorImpl final : TensorImpl {
    static UndefinedTensorImpl _singleton;
};
UndefinedTensorImpl UndefinedTensorImpl::_singleton;
}
namespace at {
class TensorBase {
public:
    c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> impl_;
};
class Tensor : public TensorBase {};
}
namespace c10 {
template <typename T> struct MaybeOwned {
    bool isBorrowed_;
    union {
        T own_;
        T borrow_;
    };
};
template <typename T> struct ArrayRef {
    const T* Data;
    size_t Length;
};
}
namespace torch {
using at::Tensor;
namespace stable {
struct AtenTensorOpaque;
class Tensor {
public:
    std::shared_ptr<AtenTensorOpaque> ath_;
};
}
}

#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#define AT(type, member, offset) static_assert(offsetof(c10::type, member) == (offset))
#if RELEASE == 201
AT(TensorImpl, storage_, 24); AT(TensorImpl, sizes_and_strides_, 72);
AT(StorageImpl, data_ptr_, 24); AT(StorageImpl, size_bytes_, 56); AT(StorageImpl, allocator_, 72);
static_assert(sizeof(c10::TensorImpl) == 192);
#else
AT(TensorImpl, storage_, 16); AT(TensorImpl, sizes_and_strides_, RELEASE >= 213 ? 56 : 64);
AT(StorageImpl, data_ptr_, 16); AT(StorageImpl, size_bytes_, 48); AT(StorageImpl, allocator_, RELEASE >= 213 ? 72 : 64);
static_assert(sizeof(c10::TensorImpl) == (RELEASE >= 213 ? 176 : 184));
#endif
AT(TensorImpl, storage_offset_, offsetof(c10::TensorImpl, sizes_and_strides_) + 88);
AT(TensorImpl, data_type_, offsetof(c10::TensorImpl, sizes_and_strides_) + 104);
AT(TensorImpl, device_opt_, offsetof(c10::TensorImpl, sizes_and_strides_) + 106);

static at::Tensor made(c10::ScalarType type, std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset,
    void* data, int64_t bytes, c10::Device device = {c10::DeviceType::CPU, -1})
{
    auto* impl = new c10::TensorImpl;
    auto* storage = new c10::StorageImpl;
    storage->data_ptr_.ptr_.data_ = data;
    storage->size_bytes_.data_ = bytes;
    impl->storage_.storage_impl_.target_ = storage;
    impl->sizes_and_strides_.size_ = sizes.size();
    int64_t* place = impl->sizes_and_strides_.inlineStorage_;
    size_t second = 5;
    if (sizes.size() > 5)
        place = impl->sizes_and_strides_.outOfLineStorage_ = new int64_t[2 * sizes.size()], second = sizes.size();
    impl->numel_ = 1;
    for (size_t i = 0; i < sizes.size(); ++i)
        place[i] = sizes[i], place[second + i] = strides[i], impl->numel_ *= sizes[i];
    impl->storage_offset_ = offset;
    impl->data_type_.index_ = uint16_t(type);
    impl->device_opt_ = device;
    at::Tensor tensor;
    tensor.impl_.target_ = impl;
    return tensor;
}

struct Outputs {
    at::Tensor hidden;
    std::optional<at::Tensor> residual;
    std::vector<at::Tensor> caches;
};

static float floats[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static int64_t longs[64];
// For the build without debug information: the same expressions as addresses of TensorImpl.
void* impls[16];

__attribute__((noipa)) void forward(Truth& truth, const at::Tensor& argument)
{
    using c10::ScalarType;
    for (int i = 0; i < 64; ++i)
        longs[i] = i;
    at::Tensor plain = made(ScalarType::Float, {3, 4}, {4, 1}, 0, floats, 48);
    at::Tensor turned = made(ScalarType::Float, {4, 3}, {1, 4}, 0, floats, 48);
    at::Tensor slice = made(ScalarType::Float, {2, 2}, {4, 1}, 5, floats, 48);
    at::Tensor scalar = made(ScalarType::Float, {}, {}, 7, floats, 48);
    at::Tensor seven = made(ScalarType::Long, {2, 2, 2, 1, 2, 2, 2}, {32, 16, 8, 8, 4, 2, 1}, 0, longs, 512);
    at::Tensor empty = made(ScalarType::Float, {0, 3}, {3, 1}, 0, nullptr, 0);
    at::Tensor meta = made(ScalarType::Half, {2, 3}, {3, 1}, 0, nullptr, 12, {c10::DeviceType::Meta, -1});
    at::Tensor remote = made(ScalarType::Half, {2, 3}, {3, 1}, 0, device_memory(4096), 12, {c10::DeviceType::CUDA, 1});
    at::Tensor symbolic = made(ScalarType::Float, {int64_t(0xa000000000001000), 3}, {3, 1}, 0, floats, 48);
    at::Tensor beyond = made(ScalarType::Float, {3, 4}, {4, 1}, 4, floats, 48);
    at::Tensor undefined;
    undefined.impl_.target_ = &c10::UndefinedTensorImpl::_singleton;
    at::Tensor* pointer = &plain;
    at::Tensor expanded = made(ScalarType::Float, {2, 4}, {0, 1}, 0, floats, 48);

    const std::vector<int> three_four{3, 4};
    truth.tensor("plain", "fp32", three_four, "cpu", counting(12));
    truth.tensor("turned", "fp32", std::vector<int>{4, 3}, "cpu", {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, {1, 4}, true);
    truth.tensor("slice", "fp32", std::vector<int>{2, 2}, "cpu", {5, 6, 9, 10}, {4, 1}, true);
    truth.tensor("scalar", "fp32", std::vector<int>{}, "cpu", {7});
    truth.tensor("seven", "int64", std::vector<int>{2, 2, 2, 1, 2, 2, 2}, "cpu", counting(64));
    truth.tensor("empty", "fp32", std::vector<int>{0, 3}, "cpu", {});
    truth.tensor("expanded", "fp32", std::vector<int>{2, 4}, "cpu", {0, 1, 2, 3, 0, 1, 2, 3}, {0, 1}, true);
    truth.says("meta", "a meta tensor has no values");
    truth.says("remote", "on GPU 1 at 0x");
    truth.says("symbolic", "symbolic");
    truth.says("beyond", "reaches to byte 64 of a storage of 48 bytes");
    const at::Tensor* all[] = {&plain, &turned, &slice, &scalar, &seven, &empty, &expanded, &meta, &remote, &symbolic, &beyond};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        impls[i] = all[i]->impl_.target_;
#ifndef NAMELESS
    std::optional<at::Tensor> optional = plain, nothing;
    c10::MaybeOwned<at::Tensor> maybe{true, {plain}};
    std::vector<at::Tensor> list{plain, turned};
    c10::ArrayRef<at::Tensor> reference{list.data(), list.size()};
    torch::stable::Tensor stable{{(torch::stable::AtenTensorOpaque*) &plain, [](void*) {}}};
    std::unordered_map<std::string, at::Tensor> map{{"x", plain}};
    Outputs outputs{plain, turned, {plain, turned}};
    for (const char* name : {"argument", "pointer", "optional", "maybe", "stable", "outputs.hidden", "plain.impl_"})
        truth.tensor(name, "fp32", three_four, "cpu", counting(12));
    truth.says("undefined", "undefined tensor");
    truth.says("nothing", "empty std::optional");
    truth.collection("list", {"[0]", "[1]"});
    truth.collection("reference", {"[0]", "[1]"});
    truth.collection("map", {"x"});
    truth.collection("outputs", {"hidden", "residual", "caches[0]", "caches[1]"});
    keep(optional), keep(nothing), keep(maybe), keep(list), keep(reference), keep(stable), keep(map), keep(outputs);
    truth.fuzz("list", &list);
    truth.fuzz("outputs", &outputs);
#endif
    truth.fuzz("plain", &plain);
    truth.fuzz("plain", plain.impl_.target_);
    truth.fuzz("seven", seven.impl_.target_);
    truth.fuzz("plain", plain.impl_.target_->storage_.storage_impl_.target_);
    keep(plain), keep(turned), keep(slice), keep(scalar), keep(seven), keep(empty), keep(meta), keep(remote);
    keep(symbolic), keep(beyond), keep(undefined), keep(pointer), keep(argument), keep(expanded), keep(impls);
    stop_here();
    keep(plain), keep(pointer), keep(argument);
}

int main(int argc, char** argv)
{
    Truth truth(argc, argv);
    forward(truth, made(c10::ScalarType::Float, {3, 4}, {4, 1}, 0, floats, 48));
    return 0;
}
