// Streams as CUDA programs hold them, each class by the names of its engine. No CUDA is in the process.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <unistd.h>

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

namespace c10 {
struct Device { int8_t type_, index_; };
struct Stream { Device device_; int64_t id_; };
namespace cuda { struct CUDAStream { Stream stream_; }; }
}
namespace tensorrt_llm { namespace runtime {
struct Deleter { bool mOwnsStream; void operator()(CUstream_st *) const {} };
struct CudaStream { std::unique_ptr<CUstream_st, Deleter> mStream; int mDevice; };
} }
namespace turbomind { namespace core {
struct StreamImpl { cudaStream_t stream_; };
struct Stream { std::shared_ptr<StreamImpl> impl_; };
} }
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
    printf("ready\n");
    fflush(stdout);
    for (char byte; read(0, &byte, 1) > 0;)
        write(1, &byte, 1);
    return !made + !legacy + !own + !!none + !event + !!no_event + !pooled.stream_.id_ + !foreign.stream_.id_
        + !broken.stream_.id_ + !owned.mDevice + !!empty.impl_ + !layer + !dangling + !number;
}
