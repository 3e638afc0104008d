// Streams as CUDA programs hold them, each class by the names of its engine. No CUDA is in the process.
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stack>
#include <unistd.h>

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

namespace c10 {
struct Device { int8_t type_, index_; };
struct Stream { Device device_; int64_t id_; };
namespace cuda {
struct CUDAStream { Stream stream_; };
namespace { // c10/cuda/CUDAStream.cpp
int num_gpus = 4;
std::array<std::array<std::array<cudaStream_t, 32>, 16>, 4> streams;
thread_local std::unique_ptr<int64_t[]> current_streams;
}
}
}
namespace tensorrt_llm { namespace runtime {
struct Deleter { bool mOwnsStream; void operator()(CUstream_st *) const {} };
struct CudaStream { std::unique_ptr<CUstream_st, Deleter> mStream; int mDevice; };
struct EventDeleter { void operator()(CUevent_st *) const {} };
struct CudaEvent { std::unique_ptr<CUevent_st, EventDeleter> mEvent; };
} }
namespace turbomind { namespace core {
struct StreamImpl { cudaStream_t stream_; };
struct Stream { std::shared_ptr<StreamImpl> impl_; };
struct EventImpl { cudaEvent_t event_; };
struct Event { std::shared_ptr<EventImpl> impl_; };
namespace { // core/context.cc
struct ContextStorage {
    std::stack<Stream> stream_;
    static ContextStorage &instance()
    {
        static thread_local ContextStorage inst;
        return inst;
    }
};
}
__attribute__((noinline)) void forward(const Stream &stream, void (*serve)())
{
    ContextStorage::instance().stream_.push({std::make_shared<StreamImpl>(StreamImpl{(cudaStream_t)0x7f0000006000})});
    ContextStorage::instance().stream_.push({std::make_shared<StreamImpl>(StreamImpl{(cudaStream_t)0x7f0000005000})});
    serve();
    asm volatile("" ::"r"(&stream));
}
} }
namespace at { namespace cuda { struct CUDAEvent { int8_t device_index_; cudaEvent_t event_; }; } }
struct Layer { virtual ~Layer() {} cudaStream_t stream_; };

int main()
{
    cudaStream_t made = (cudaStream_t)0x7f0000001000, legacy = (cudaStream_t)1, own = (cudaStream_t)2, none = nullptr;
    cudaEvent_t event = (cudaEvent_t)0x7f0000002000, no_event = nullptr;
    c10::cuda::CUDAStream pooled{{{1, 3}, 5 << 5 | 2 << 1 | 1}}, foreign{{{1, 3}, 0x7f0000003000}}, broken{{{1, 3}, 0x7f0000003001}};
    tensorrt_llm::runtime::CudaStream owned{std::unique_ptr<CUstream_st, tensorrt_llm::runtime::Deleter>(made, {true}), 4};
    turbomind::core::Stream shared{std::make_shared<turbomind::core::StreamImpl>(turbomind::core::StreamImpl{made})}, empty{};
    Layer real, *layer = &real, *dangling = (Layer *)0x10;
    real.stream_ = made;
    double number = 1.5;
    c10::cuda::streams[1][3][5] = (cudaStream_t)0x7f0000004000;
    c10::cuda::current_streams.reset(new int64_t[c10::cuda::num_gpus]{0, 0, 0, pooled.stream_.id_});
    c10::cuda::CUDAStream unmade{{{1, 2}, 5 << 5 | 2 << 1 | 1}};
    turbomind::core::Stream *behind = &shared;
    at::cuda::CUDAEvent of_torch{3, event};
    tensorrt_llm::runtime::CudaEvent of_trt{std::unique_ptr<CUevent_st, tensorrt_llm::runtime::EventDeleter>(event)};
    turbomind::core::Event of_tm{std::make_shared<turbomind::core::EventImpl>(turbomind::core::EventImpl{event})};
    turbomind::core::forward(shared, [] {
        printf("ready\n");
        fflush(stdout);
        for (char byte; read(0, &byte, 1) > 0;)
            write(1, &byte, 1);
    });
    return !made + !legacy + !own + !!none + !event + !!no_event + !pooled.stream_.id_ + !foreign.stream_.id_
        + !broken.stream_.id_ + !owned.mDevice + !!empty.impl_ + !layer + !dangling + !behind + !of_torch.event_ + !of_trt.mEvent + !of_tm.impl_ + !unmade.stream_.id_ + !number;
}
