/* The model: each decoding step reduces over the ranks, then gathers the step's output on a stream of its own. */
#pragma once

#include "layers.h"
#include "requests.h"

#include <memory>

namespace fastertransformer {

template<typename T>
class ParallelGpt : public BaseLayer<T> {
public:
    ParallelGpt(const BaseLayer<T>& base, NcclParam tensor_para, NcclParam pipeline_para, cudaStream_t gather_stream,
                const Plan& plan);
    /* Serves requests until the process ends. */
    void forward(RequestSource& requests);

private:
    void decode(int step);
    void allocateBuffer(size_t size);
    void freeBuffer();
    void loadAdapter();
    void prepareStep(int step);
    void readPromptTable();
    void backOff();
    void updateWeights();
    void sampleOnHost();
    void startGather();
    void synchronize();
    void shutdown();

    const Plan& plan_;
    NcclParam tensor_para_, pipeline_para_;
    cudaStream_t gather_stream_;
    cudaEvent_t done_;
    GptContextDecoder<T> context_decoder_;
    T* decoder_output_ = nullptr;
    T* gathered_output_ = nullptr;
    void* staging_ = nullptr;
    uint64_t sampled_ = 0;
    std::mutex weights_mutex_;
};

}  // namespace fastertransformer
