// Frames that hold tensors in a build without debug information. ENGINE: 50 and 51 are FasterTransformer 5.0 and 5.1,
// 73 and 80 TurboMind 0.7.3 and 0.8.0, 13 and 20 RTP-LLM 0.1.3 and 0.2.0, 60 a Triton back end; 99 is a fork whose struct is another one.
// At each stop the program writes what each of its functions holds.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#define NOINLINE __attribute__((noinline))

#if ENGINE == 73 || ENGINE == 80
#define SPACE turbomind
#elif ENGINE == 20
#define SPACE rtp_llm
#elif ENGINE == 60
#define SPACE triton
#else
#define SPACE fastertransformer
#endif

namespace SPACE {
enum MemoryType { CPU, PINNED, GPU };
#if ENGINE == 80
namespace core {
using ssize_t = long;
enum class DataType : int { FP32 = 0x10817, FP16 = 0x1050A };
struct Device { int type; int id; };
struct Layout { std::vector<ssize_t> shape_, stride_; ssize_t size_; };
struct Buffer { std::shared_ptr<void> data_; ssize_t base_, size_; Device device_; DataType dtype_; };
class Tensor {
public:
    Tensor() = default;
    Tensor(MemoryType where, DataType type, std::vector<ssize_t> shape, void* data)
    {
        std::vector<ssize_t> stride(shape.size());
        ssize_t size = 1;
        for (size_t i = shape.size(); i-- > 0; size *= shape[i])
            stride[i] = size;
        layout_ = {shape, stride, size};
        buffer_ = {std::shared_ptr<void>(data, [](void*) {}), 0, size, {where, -1}, type};
    }
    Layout layout_;
    Buffer buffer_;
    const std::vector<ssize_t>& shape() const { return layout_.shape_; }
    const void* data() const { return buffer_.data_.get(); }
    int where() const { return buffer_.device_.type; }
    bool is_half() const { return buffer_.dtype_ == DataType::FP16; }
};
struct TensorMap : public std::unordered_map<std::string, Tensor> {};
}
using core::Tensor;
using core::TensorMap;
using Type = core::DataType;
using Length = long;
#elif ENGINE == 20
enum Type : unsigned char { FP16 = 10, FP32 = 11 };
using Length = size_t;
class Buffer {
public:
    Buffer(MemoryType where, Type type, const std::vector<size_t>& shape, const void* data)
        : where_(where), type_(type), shape_(shape), data_((void*) data) {}
    virtual ~Buffer();
    Buffer(const Buffer&) = delete;
    const std::vector<size_t>& shape() const { return shape_; }
    const void* data() const { return data_; }
    int where() const { return where_; }
    bool is_half() const { return type_ == FP16; }
private:
    MemoryType where_;
    Type type_;
    std::vector<size_t> shape_;
    void* data_;
    std::function<void(Buffer*)> deleter_;
    mutable size_t view_count_ = 0;
    std::shared_ptr<Buffer> parent_;
};
Buffer::~Buffer() {}
using Tensor = Buffer;
#else
enum Type { FP16 = 10, FP32 = 11 };
using Length = size_t;
#if ENGINE == 13
#define MEMBER(name) name##_
#else
#define MEMBER(name) name##_member
#define where_member where
#define type_member type
#define shape_member shape
#define data_member data
#endif
struct Tensor {
#if ENGINE == 99
    std::vector<size_t> shape;
    double scale = 1e-3;
    const void* data;
    Type type;
    MemoryType where;
    std::vector<size_t> offsets;
    Tensor(MemoryType w, Type t, std::vector<size_t> s, const void* d) : shape(s), data(d), type(t), where(w) {}
#else
    MemoryType MEMBER(where);
    Type MEMBER(type);
    std::vector<size_t> MEMBER(shape);
    const void* MEMBER(data);
#if ENGINE == 51 || ENGINE == 73
    std::vector<size_t> offsets = std::vector<size_t>{};
#endif
    Tensor(MemoryType w, Type t, std::vector<size_t> s, const void* d)
        : MEMBER(where)(w), MEMBER(type)(t), MEMBER(shape)(s), MEMBER(data)(d) {}
#endif
};
#if ENGINE == 13
struct DeviceBase { virtual ~DeviceBase(); };
DeviceBase::~DeviceBase() {}
#endif
#if ENGINE == 60
using TensorMap = std::shared_ptr<std::unordered_map<std::string, Tensor>>;
#else
class TensorMap {
public:
    TensorMap(const std::unordered_map<std::string, Tensor>& map) : tensor_map_(map) {}
    NOINLINE Tensor& at(const std::string& key) { return tensor_map_.at(key); }
    NOINLINE size_t size() const { return tensor_map_.size(); }
private:
    std::unordered_map<std::string, Tensor> tensor_map_;
};
#endif
#endif
}

using namespace SPACE;
#if ENGINE == 20
using Map = std::unordered_map<std::string, std::shared_ptr<Buffer>>;
static const Tensor& get(Map& map, const char* key) { return *map.at(key); }
#elif ENGINE == 50
using Map = std::unordered_map<std::string, Tensor>;
static const Tensor& get(Map& map, const char* key) { return map.at(key); }
#elif ENGINE == 60
using Map = std::unordered_map<std::string, Tensor>;
static const Tensor& get(Map& map, const char* key) { return map.at(key); }
#else
using Map = TensorMap;
static const Tensor& get(Map& map, const char* key) { return map.at(key); }
#endif

static FILE* truth;
static std::vector<std::string> held;
static long sink;

static std::string said(const char* function, const Tensor& tensor)
{
    static const char* places[] = {"cpu", "pinned", "gpu"};
    std::string text = std::string("{\"function\": \"") + function + "\", \"dtype\": ";
#if ENGINE == 80 || ENGINE == 20
    const auto& shape = tensor.shape();
    const void* data = tensor.data();
    int where = tensor.where();
    bool half = tensor.is_half();
#elif ENGINE == 99
    const auto& shape = tensor.shape;
    const void* data = tensor.data;
    int where = tensor.where;
    bool half = tensor.type == FP16;
#else
    const auto& shape = tensor.MEMBER(shape);
    const void* data = tensor.MEMBER(data);
    int where = tensor.MEMBER(where);
    bool half = tensor.MEMBER(type) == FP16;
#endif
    text += std::string(half ? "\"fp16\"" : "\"fp32\"") + ", \"where\": \"" + places[where] + "\", \"shape\": [";
    for (size_t i = 0; i < shape.size(); ++i)
        text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "], \"address\": " + std::to_string((unsigned long) data) + "}";
}

struct Hold {
    Hold(const char* function, const Tensor& tensor) { held.push_back(said(function, tensor)); }
    ~Hold() { held.pop_back(); }
};

extern "C" __attribute__((noipa)) void stop_here() { asm volatile("" ::: "memory"); }

static NOINLINE void stop()
{
    fprintf(truth, "[");
    for (size_t i = 0; i < held.size(); ++i)
        fprintf(truth, "%s%s", i ? ", " : "", held[i].c_str());
    fprintf(truth, "]\n");
    fflush(truth);
    stop_here();
}

namespace SPACE {
struct Weight { float* kernel; int rows; };
class Base { public: virtual ~Base() = default; };
template <typename T> class Attention : public Base {
public:
    explicit Attention(float* data) : cached_(CPU, Type::FP32, {3, 4}, data) {}
    NOINLINE void softmax(const Tensor& scores, float scale, int rows);
    NOINLINE void forward(Map* output, Map* input, const Weight* weight);
    Tensor cached_;
};
template <typename T> NOINLINE void Attention<T>::softmax(const Tensor& scores, float scale, int rows)
{
    Hold one("softmax", scores), two("softmax", cached_);
    stop();
    sink += long(scale) + rows + long(&scores) + long(&cached_);
}
template <typename T> NOINLINE void Attention<T>::forward(Map* output, Map* input, const Weight* weight)
{
    Hold one("forward", get(*input, "hidden")), two("forward", get(*output, "output"));
    { Tensor gone(PINNED, Type::FP16, {7, 7, 7}, weight->kernel); sink += long(&gone); }
    Tensor local(CPU, Type::FP32, {2, 5}, weight->kernel + 8);
    Hold three("forward", local);
    softmax(local, 1.f, 3);
    stop();
    sink += output->size() + input->size() + long(&local);
}
}

#if ENGINE == 60
namespace triton {
NOINLINE void answer(TensorMap result)
{
    Hold one("answer", result->at("output"));
    stop();
    sink += result->size();
}
}
#endif

NOINLINE void list(const std::vector<std::shared_ptr<Tensor>>& all)
{
    Hold one("list", *all[0]), two("list", *all[1]);
    stop();
    sink += all.size();
}

int main(int argc, char** argv)
{
    truth = argc > 1 ? fopen(argv[1], "w") : stdout;
    float* data = (float*) malloc(1 << 16);
    auto make = [&](MemoryType where, Type type, std::vector<Length> shape) {
        return std::make_shared<Tensor>(where, type, shape, where == GPU ? (void*) 0x7f0000000000 : data); };
    auto hidden = make(CPU, Type::FP32, {4, 8}), result = make(PINNED, Type::FP16, {2, 3, 4}), remote = make(GPU, Type::FP16, {16, 16});
#if ENGINE == 20
    Map input{{"hidden", hidden}, {"a_rather_long_name_of_a_tensor", remote}}, output{{"output", result}};
#elif ENGINE == 80
    Map input, output;
    input.emplace("hidden", *hidden), input.emplace("a_rather_long_name_of_a_tensor", *remote), output.emplace("output", *result);
#else
    std::unordered_map<std::string, Tensor> in{{"hidden", *hidden}, {"a_rather_long_name_of_a_tensor", *remote}}, out{{"output", *result}};
    Map input(in), output(out);
#endif
    Attention<float>* attention = new Attention<float>(data);
    Hold one("main", *hidden), two("main", *result), three("main", *remote), four("elsewhere", attention->cached_);
    Weight weight{data, 4};
    attention->forward(&output, &input, &weight);
    list({hidden, remote});
#if ENGINE == 60
    auto shared = std::make_shared<Map>(output);
    answer(shared);
    sink += shared->size();
#endif
    sink += input.size() + output.size() + long(hidden.get()) + long(result.get()) + long(remote.get());
    printf("%ld\n", sink);
    return 0;
}
