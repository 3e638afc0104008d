// FasterTransformer's tensors: RELEASE is 50 (v5.0), 51, 52 or 53 (v5.3 and main).
#include "truth.h"
#include <memory>
#include <unordered_map>

namespace fastertransformer {

typedef enum datatype_enum {
    TYPE_INVALID, TYPE_BOOL, TYPE_UINT8, TYPE_UINT16, TYPE_UINT32, TYPE_UINT64, TYPE_INT8, TYPE_INT16, TYPE_INT32,
    TYPE_INT64, TYPE_FP16, TYPE_FP32, TYPE_FP64, TYPE_BYTES, TYPE_BF16,
#if RELEASE >= 53
    TYPE_FP8_E4M3,
#endif
#if RELEASE >= 51
    TYPE_STR,
#endif
#if RELEASE >= 52
    TYPE_VOID,
#endif
} DataType;

typedef enum memorytype_enum { MEMORY_CPU, MEMORY_CPU_PINNED, MEMORY_GPU } MemoryType;

struct Tensor {
    const MemoryType where;
    const DataType type;
    const std::vector<size_t> shape;
    const void* data;
#if RELEASE >= 51
    const std::vector<size_t> offsets = std::vector<size_t>{};
    Tensor() : where(MEMORY_CPU), type(TYPE_INVALID), shape({}), data(nullptr) {}
#endif
    Tensor(MemoryType w, DataType t, std::vector<size_t> s, const void* d) : where(w), type(t), shape(s), data(d) {}
};

#if RELEASE >= 51
class TensorMap {
public:
    explicit TensorMap(std::unordered_map<std::string, Tensor> map) : tensor_map_(std::move(map)) {}
private:
    std::unordered_map<std::string, Tensor> tensor_map_;
};
#endif
}

namespace ft = fastertransformer;

namespace triton {
struct Tensor {
    const ft::MemoryType where;
    const ft::DataType type;
    const std::vector<size_t> shape;
    const void* data;
};
}

#if RELEASE >= 53
namespace tensorrt_llm { namespace common {
class Tensor {
public:
    ft::MemoryType where;
    ft::DataType type;
    std::vector<size_t> shape;
    void const* data;
};
} }
#endif

__attribute__((noipa)) void forward(Truth& truth, const ft::Tensor& argument)
{
    static float floats[6] = {0, 1, 2, 3, 4, 5};
    static uint16_t halves[8];
    static int ids[3] = {7, -8, 9};
    for (int i = 0; i < 8; ++i)
        halves[i] = half(float(i) - 2.f);
    void* device = device_memory(4096);

    ft::Tensor plain(ft::MEMORY_CPU, ft::TYPE_FP32, {2, 3}, floats);
    ft::Tensor halved(ft::MEMORY_CPU_PINNED, ft::TYPE_FP16, {2, 2, 2}, halves);
    ft::Tensor remote(ft::MEMORY_GPU, ft::TYPE_FP16, {4, 4}, device);
    ft::Tensor lying(ft::MEMORY_CPU, ft::TYPE_INT32, {4}, device);
    ft::Tensor nothing(ft::MEMORY_CPU, ft::TYPE_FP32, {2, 2}, nullptr);
    ft::Tensor scalar(ft::MEMORY_CPU, ft::TYPE_INT32, {}, ids);
    ft::Tensor empty(ft::MEMORY_CPU, ft::TYPE_INT32, {0, 5}, ids);
    ft::Tensor* pointer = &plain;
    ft::Tensor* null = nullptr;
    auto shared = std::make_shared<ft::Tensor>(ft::MEMORY_CPU, ft::TYPE_INT32, std::vector<size_t>{3}, ids);
    std::shared_ptr<ft::Tensor> empty_shared;
    std::unique_ptr<ft::Tensor> unique(new ft::Tensor(plain));
    std::vector<ft::Tensor> list{plain, halved};
    std::unordered_map<std::string, ft::Tensor> map{{"input_ids", *shared}, {"a_rather_long_name_of_a_tensor", plain}};
    std::unordered_map<std::string, ft::Tensor>* map_pointer = &map;
    std::unordered_map<std::string, ft::Tensor> empty_map;
    struct Pair { ft::Tensor first; int count; std::shared_ptr<ft::Tensor> second; } pair{plain, 5, shared};
    triton::Tensor request{ft::MEMORY_CPU, ft::TYPE_FP32, {3, 2}, floats};
    auto requests = std::make_shared<std::unordered_map<std::string, triton::Tensor>>();
    requests->insert({"output", request});

    const std::vector<int> two_three{2, 3}, three{3};
    for (const char* name : {"plain", "argument", "pointer", "*pointer", "unique", "list[0]", "&plain", "pair.first"})
        truth.tensor(name, "fp32", two_three, "cpu", counting(6));
    truth.tensor("halved", "fp16", std::vector<int>{2, 2, 2}, "pinned", counting(8, -2));
    truth.tensor("shared", "int32", three, "cpu", {7, -8, 9});
    truth.tensor("request", "fp32", std::vector<int>{3, 2}, "cpu", counting(6));
    truth.tensor("empty", "int32", std::vector<int>{0, 5}, "cpu", {});
    truth.says("remote", "cannot read device memory (it would show zeros)");
    truth.says("lying", "says cpu, but its address has no access");
    truth.says("nothing", "null pointer");
    truth.says("null", "null pointer");
    truth.says("scalar", "rank 0 means no elements");
    truth.says("empty_shared", "null pointer");
    truth.collection("list", {"[0]", "[1]"});
    truth.collection("pair", {"first", "second"});
    for (const char* name : {"map", "map_pointer", "*map_pointer"})
        truth.collection(name, {"input_ids", "a_rather_long_name_of_a_tensor"});
    truth.collection("empty_map", {});
    truth.collection("requests", {"output"});
#if RELEASE >= 51
    ft::TensorMap tensors(map);
    ft::Tensor unset;
    truth.collection("tensors", {"input_ids", "a_rather_long_name_of_a_tensor"});
    truth.collection("&tensors", {"input_ids", "a_rather_long_name_of_a_tensor"});
    truth.says("unset", "unset: empty: it has no element type and no memory");
    truth.fuzz("tensors", &tensors);
    ft::Tensor text(ft::MEMORY_CPU, ft::TYPE_STR, {1}, floats);
    truth.says("text", "string");
    keep(text);
#endif
#if RELEASE >= 53
    static unsigned char eights[4] = {0x38, 0x40, 0xb8, 0x00};
    ft::Tensor eight(ft::MEMORY_CPU, ft::TYPE_FP8_E4M3, {4}, eights);
    truth.tensor("eight", "fp8_e4m3fn", std::vector<int>{4}, "cpu", {1, 2, -1, 0});
    tensorrt_llm::common::Tensor early{ft::MEMORY_CPU, ft::TYPE_FP32, {2, 3}, floats};
    truth.tensor("early", "fp32", two_three, "cpu", counting(6));
    keep(eight), keep(early);
#endif
    truth.fuzz("plain", &plain);
    truth.fuzz("shared", &shared);
    truth.fuzz("shared", shared.get());
    truth.fuzz("list", &list);
    truth.fuzz("map", &map);
    truth.fuzz("request", &request);
    keep(plain), keep(halved), keep(remote), keep(lying), keep(nothing), keep(scalar), keep(empty), keep(pointer);
    keep(null), keep(shared), keep(empty_shared), keep(unique), keep(list), keep(map), keep(map_pointer);
    keep(empty_map), keep(pair), keep(request), keep(requests), keep(argument);
#if RELEASE >= 51
    keep(tensors), keep(unset);
#endif
    stop_here();
    keep(plain), keep(argument), keep(pointer), keep(null), keep(map_pointer);
}

int main(int argc, char** argv)
{
    Truth truth(argc, argv);
    static float floats[6] = {0, 1, 2, 3, 4, 5};
    ft::Tensor argument(ft::MEMORY_CPU, ft::TYPE_FP32, {2, 3}, floats);
    forward(truth, argument);
    return 0;
}
