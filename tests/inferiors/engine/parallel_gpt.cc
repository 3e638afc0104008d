#include "parallel_gpt.h"

#include "../job.h"
#include "threads.h"

#include <csignal>
#include <thread>
#include <time.h>
#include <unistd.h>

namespace fastertransformer {

static constexpr int TOKENS = 4, OUTPUT_SIZE = TOKENS * 1024;

template<typename T>
ParallelGpt<T>::ParallelGpt(const BaseLayer<T>& base, NcclParam tensor_para, NcclParam pipeline_para, cudaStream_t gather_stream,
                            const Plan& plan)
    : BaseLayer<T>(base), plan_(plan), tensor_para_(tensor_para), pipeline_para_(pipeline_para), gather_stream_(gather_stream),
      context_decoder_(base, tensor_para, pipeline_para, plan) {
    check_cuda_error(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
    const size_t world = static_cast<size_t>(tensor_para.world_size_);
    decoder_output_ = static_cast<T*>(this->allocator_->malloc(OUTPUT_SIZE * sizeof(T)));
    gathered_output_ = static_cast<T*>(this->allocator_->malloc(world * OUTPUT_SIZE * sizeof(T)));
    allocateBuffer(1 << 20);
}

template<typename T>
ENGINE_FRAME void ParallelGpt<T>::allocateBuffer(size_t size) { staging_ = this->allocator_->malloc(size, true); }

template<typename T>
ENGINE_FRAME void ParallelGpt<T>::freeBuffer() {
    void* scratch = this->allocator_->malloc(1 << 20);
    this->allocator_->free(&scratch);
}

/* An adapter comes with a cuBLAS handle of its own. */
template<typename T>
ENGINE_FRAME void ParallelGpt<T>::loadAdapter() {
    cublasHandle_t handle;
    check_cuda_error(cublasCreate_v2(&handle));
    cublasMMWrapper adapter(handle, this->stream_);
    adapter.Gemm(16, 1024, 1024, nullptr, nullptr);
}

/* A pipe that nobody writes to. */
static int silent_pipe() {
    int ends[2];
    if (pipe(ends))
        throw std::runtime_error("pipe failed");
    return ends[0];
}

template<typename T>
ENGINE_FRAME void ParallelGpt<T>::readPromptTable() {
    char table[4096];
    if (read(silent_pipe(), table, sizeof table) < 0)
        throw std::runtime_error("cannot read the prompt table");
}

template<typename T>
ENGINE_FRAME void ParallelGpt<T>::backOff() {
    const timespec day = {86400, 0};
    nanosleep(&day, nullptr);
}

/* The loader thread holds the lock of the weights while it reads. */
template<typename T>
ENGINE_FRAME void ParallelGpt<T>::updateWeights() {
    Signal locked;
    std::thread loader([this, &locked] {
        name_thread("weight-loader");
        std::lock_guard<std::mutex> lock(weights_mutex_);
        locked.set();
        readPromptTable();
    });
    loader.detach();
    locked.wait();
    std::lock_guard<std::mutex> lock(weights_mutex_);
    sampled_++;
}

template<typename T>
ENGINE_FRAME void ParallelGpt<T>::sampleOnHost() {
    const uint64_t until = job_now() + 50000000;
    while (job_now() < until)
        for (uint64_t token = 0; token < 20000; token++)
            sampled_ = sampled_ * 6364136223846793005u + token;
}

template<typename T>
ENGINE_FRAME void ParallelGpt<T>::shutdown() { ftNcclParamAbort(tensor_para_); }

template<typename T>
void ParallelGpt<T>::prepareStep(int step) {
    if (plan_.stops_before_collective(step))
        job_arm();
    switch (plan_.fault(step)) {
    case Fault::PinnedAlloc: return allocateBuffer(8 << 20);
    case Fault::PinnedFree: return this->allocator_->free(&staging_, true);
    case Fault::DeviceFree: return freeBuffer();
    case Fault::CublasFirstUse: return loadAdapter();
    case Fault::ModuleLoad: return prepareQuantize();
    case Fault::LazyLaunch: return invokeQuantize(this->stream_);
    case Fault::Crash: raise(SIGKILL); return;
    case Fault::ReadPipe: return readPromptTable();
    case Fault::Sleep: return backOff();
    case Fault::Lock: return updateWeights();
    case Fault::Abort: return shutdown();
    case Fault::CpuBusy: return sampleOnHost();
    case Fault::FillQueue:
        for (int i = 0; i < 2 * DEVICE_QUEUE; i++)
            invokeAddBiasGelu(gather_stream_);
        return;
    default: return;
    }
}

template<typename T>
ENGINE_FRAME void ParallelGpt<T>::startGather() {
    ftNcclAllGather(decoder_output_, gathered_output_, OUTPUT_SIZE, pipeline_para_.rank_, pipeline_para_, gather_stream_);
}

/* Waits until the step's reduction has finished, in the way asked for. */
template<typename T>
ENGINE_FRAME void ParallelGpt<T>::synchronize() {
    char token[64];
    if (plan_.sync == "event") {
        check_cuda_error(cudaEventRecord(done_, this->stream_));
        check_cuda_error(cudaEventSynchronize(done_));
    } else if (plan_.sync == "device") {
        check_cuda_error(cudaDeviceSynchronize());
    } else if (plan_.sync == "memcpy") {
        check_cuda_error(cudaMemcpy(token, decoder_output_, sizeof token, cudaMemcpyDeviceToHost));
    } else if (plan_.sync == "query") {
        ftNcclStreamSynchronize(tensor_para_, pipeline_para_, this->stream_);
    } else {
        check_cuda_error(cudaStreamSynchronize(this->stream_));
    }
}

template<typename T>
ENGINE_FRAME void ParallelGpt<T>::decode(int step) {
    const bool early = plan_.gathers_early(step);
    if (early)
        startGather();
    prepareStep(step);
    context_decoder_.forward(decoder_output_, decoder_output_, TOKENS, step);
    synchronize();
    if (!early)
        startGather();
    check_cuda_error(cudaStreamSynchronize(gather_stream_));
}

template<typename T>
ENGINE_FRAME void ParallelGpt<T>::forward(RequestSource& requests) {
    const int settled = FAULT_STEP + 3;
    for (int step = 0;; step++) {
        if (plan_.fault(step) == Fault::Idle)
            job_arm();
        requests.next(step);
        decode(step);
        job_state()->ranks[job_rank()].steps++;
        if (step == settled)
            job_report("running");
    }
}

template class ParallelGpt<float>;

}  // namespace fastertransformer
