// A kernel as inference engines have it, with an error: it does not ask whether its element is one of the tensor's.
// `python -m tests.inferiors.gpu_fault_job NVCC` makes add_residual_kernels.ptx of it; neither is ever run.

namespace fastertransformer {

template<typename T>
__device__ __forceinline__ void store(T* output, int at, T value) {
    output[at] = value;
}

template<typename T>
__global__ void addBiasResidual(T* output, const T* input, const T* bias, int n) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    store(output, at, output[at] + input[at] + bias[at % n]);
}

template __global__ void addBiasResidual<float>(float*, const float*, const float*, int);

}  // namespace fastertransformer
