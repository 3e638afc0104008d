/* Tensor-parallel layers of a GPT, reduced to the calls that matter for a hang. */
#pragma once

#include "cublasMMWrapper.h"
#include "cuda_utils.h"
#include "nccl_utils.h"
#include "plan.h"

namespace fastertransformer {

template<typename T>
class BaseLayer {
public:
    BaseLayer(cudaStream_t stream, cublasMMWrapper* cublas_wrapper, const Allocator<AllocatorType::CUDA>* allocator)
        : stream_(stream), cublas_wrapper_(cublas_wrapper), allocator_(allocator) {}
    virtual ~BaseLayer() = default;

protected:
    cudaStream_t stream_;
    cublasMMWrapper* cublas_wrapper_;
    const Allocator<AllocatorType::CUDA>* allocator_;
};

template<typename T>
class TensorParallelGeluFfnLayer : public BaseLayer<T> {
public:
    TensorParallelGeluFfnLayer(const BaseLayer<T>& base, NcclParam tensor_para, NcclParam pipeline_para, const Plan& plan)
        : BaseLayer<T>(base), tensor_para_(tensor_para), pipeline_para_(pipeline_para), plan_(plan) {}
    void forward(T* output, const T* input, int token_num, int step);

private:
    void reduceOnBoth(T* output, int data_size, int step);

    NcclParam tensor_para_, pipeline_para_;
    const Plan& plan_;
    int hidden_units_ = 1024;
};

template<typename T>
class GptContextDecoder : public BaseLayer<T> {
public:
    GptContextDecoder(const BaseLayer<T>& base, NcclParam tensor_para, NcclParam pipeline_para, const Plan& plan)
        : BaseLayer<T>(base), plan_(plan), ffn_layer_(base, tensor_para, pipeline_para, plan) {}
    void forward(T* output, const T* input, int token_num, int step);

private:
    void attention(int step);

    const Plan& plan_;
    TensorParallelGeluFfnLayer<T> ffn_layer_;
    int num_layer_ = 1;
};

}  // namespace fastertransformer
