// MindSpore 2.10's tensor: the members that say what it holds, in their order.
#include "truth.h"
#include <functional>
#include <memory>

namespace mindspore {
enum TypeId : int {
    kTypeUnknown = 0, kNumberTypeBegin = 29, kNumberTypeBool, kNumberTypeInt, kNumberTypeInt8, kNumberTypeInt16,
    kNumberTypeInt32, kNumberTypeInt64, kNumberTypeUInt, kNumberTypeUInt8, kNumberTypeUInt16, kNumberTypeUInt32,
    kNumberTypeUInt64, kNumberTypeFloat, kNumberTypeFloat16, kNumberTypeFloat32, kNumberTypeFloat64,
    kNumberTypeBFloat16,
};
namespace device {
enum class DeviceType { kUnknown = 0, kCPU = 1, kAscend = 2, kGPU = 3 };
struct DevicePointer { void* ptr_ = nullptr; };
class DeviceAddress {
public:
    virtual ~DeviceAddress() = default;
    std::shared_ptr<DevicePointer> device_pointer_;
    size_t stream_id_ = 0, size_ = 0;
    DeviceType device_type_ = DeviceType::kUnknown;
};
}
struct TensorStorageInfo {
    std::vector<int64_t> shape, strides;
    size_t storage_offset = 0;
    std::vector<int64_t> ori_shape, ori_strides;
    bool is_contiguous = false;
};
namespace tensor {
class MetaTensor {
public:
    virtual ~MetaTensor() = default;
    TypeId data_type_ = kTypeUnknown;
    std::vector<int64_t> shape_;
    bool is_parameter_ = false;
    std::shared_ptr<void> param_info_;
};
class Tensor : public MetaTensor {
public:
    std::function<void()> contiguous_callback_, update_value_callback_;
    uint64_t id_ = 0;
    std::string tensor_name_;
    std::shared_ptr<device::DeviceAddress> device_sync_;
    std::shared_ptr<TensorStorageInfo> storage_info_;
};
using TensorPtr = std::shared_ptr<Tensor>;
}
}
using namespace mindspore;

static tensor::TensorPtr made(TypeId type, std::vector<int64_t> shape, void* data, device::DeviceType place)
{
    auto tensor = std::make_shared<tensor::Tensor>();
    tensor->data_type_ = type;
    tensor->shape_ = shape;
    tensor->tensor_name_ = "wq";
    tensor->device_sync_ = std::make_shared<device::DeviceAddress>();
    tensor->device_sync_->device_pointer_ = std::make_shared<device::DevicePointer>();
    tensor->device_sync_->device_pointer_->ptr_ = data;
    tensor->device_sync_->device_type_ = place;
    return tensor;
}

__attribute__((noipa)) void launch(Truth& truth, const tensor::TensorPtr& argument)
{
    static float floats[6] = {0, 1, 2, 3, 4, 5};
    auto plain = made(kNumberTypeFloat32, {2, 3}, floats, device::DeviceType::kCPU);
    auto turned = made(kNumberTypeFloat32, {2, 3}, floats, device::DeviceType::kCPU);
    turned->storage_info_ = std::make_shared<TensorStorageInfo>();
    turned->storage_info_->shape = {2, 2};
    turned->storage_info_->strides = {1, 3};
    turned->storage_info_->storage_offset = 1;
    auto remote = made(kNumberTypeBFloat16, {2, 3}, device_memory(4096), device::DeviceType::kAscend);
    auto empty = std::make_shared<tensor::Tensor>();
    truth.tensor("plain", "fp32", std::vector<int>{2, 3}, "cpu", counting(6));
    truth.tensor("argument", "fp32", std::vector<int>{2, 3}, "cpu", counting(6));
    truth.tensor("turned", "fp32", std::vector<int>{2, 2}, "cpu", {1, 4, 2, 5}, {1, 3}, true);
    truth.says("plain", "called wq");
    truth.says("remote", "on NPU at 0x");
    truth.says("empty", "no element type and no memory");
    truth.fuzz("plain", plain.get());
    truth.fuzz("plain", plain->device_sync_.get());
    truth.fuzz("turned", turned->storage_info_.get());
    keep(plain), keep(turned), keep(remote), keep(empty), keep(argument);
    stop_here();
    keep(plain), keep(argument);
}

int main(int argc, char** argv)
{
    Truth truth(argc, argv);
    static float floats[6] = {0, 1, 2, 3, 4, 5};
    auto argument = made(kNumberTypeFloat32, {2, 3}, floats, device::DeviceType::kCPU);
    launch(truth, argument);
    return 0;
}
