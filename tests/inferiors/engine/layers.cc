#include "layers.h"

#include "../job.h"

namespace fastertransformer {

template<typename T>
ENGINE_FRAME void TensorParallelGeluFfnLayer<T>::reduceOnBoth(T* output, int data_size, int step) {
    const bool swapped = plan_.fault(step) == Fault::OtherOrder;
    ftNcclAllReduceSum(output, output, data_size, swapped ? pipeline_para_ : tensor_para_, this->stream_);
    ftNcclAllReduceSum(output, output, data_size, swapped ? tensor_para_ : pipeline_para_, this->stream_);
}

template<typename T>
ENGINE_FRAME void TensorParallelGeluFfnLayer<T>::forward(T* output, const T* input, int token_num, int step) {
    const int data_size = token_num * hidden_units_;
    this->cublas_wrapper_->Gemm(token_num, hidden_units_, hidden_units_, input, output);
    invokeAddBiasGelu(this->stream_);
    // From here on a rank of a hung job waits for its peers; what it waits for before is its own kernels.
    if (step == FAULT_STEP && !plan_.is(Fault::SlowKernels) && !plan_.is(Fault::CpuBusy))
        job_arm();
    if (plan_.is(Fault::OtherOrder))
        reduceOnBoth(output, data_size, step);
    else if (plan_.fault(step) == Fault::OtherCollective)
        ftNcclAllGather(output, output, data_size, tensor_para_.rank_, tensor_para_, this->stream_);
    else
        ftNcclAllReduceSum(output, output, plan_.fault(step) == Fault::OtherCount ? data_size / 2 : data_size, tensor_para_,
                           this->stream_);
}

template<typename T>
ENGINE_FRAME void GptContextDecoder<T>::attention(int step) {
    this->cublas_wrapper_->Gemm(16, 1024, 3072, nullptr, nullptr);
    invokeMaskedAttention(plan_.fault(step) == Fault::SlowKernels ? 300000 : 500, this->stream_);
}

template<typename T>
ENGINE_FRAME void GptContextDecoder<T>::forward(T* output, const T* input, int token_num, int step) {
    for (int layer = 0; layer < num_layer_; layer++) {
        attention(step);
        ffn_layer_.forward(output, input, token_num, step);
    }
}

template class TensorParallelGeluFfnLayer<float>;
template class GptContextDecoder<float>;

}  // namespace fastertransformer
