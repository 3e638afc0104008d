#include "nccl_utils.h"

#include "../job.h"
#include "cuda_utils.h"

#define NCCLCHECK(cmd)                                                                                     \
    do {                                                                                                   \
        ncclResult_t r = (cmd);                                                                            \
        if (r != ncclSuccess) {                                                                            \
            fprintf(stderr, "Failed, NCCL error %s:%d '%s'\n", __FILE__, __LINE__, ncclGetErrorString(r)); \
            exit(EXIT_FAILURE);                                                                            \
        }                                                                                                  \
    } while (0)

namespace fastertransformer {

bool sync_collectives = false;

template<typename T>
ncclDataType_t getNcclDataType();
template<>
ncclDataType_t getNcclDataType<float>() { return ncclFloat32; }

template<typename T>
ENGINE_FRAME void ftNcclAllReduceSum(const T* send_buf, T* recv_buf, const int data_size, NcclParam nccl_param,
                                     cudaStream_t stream) {
    FT_LOG_DEBUG("%s start\n", __PRETTY_FUNCTION__);
    NCCLCHECK(ncclAllReduce(send_buf, recv_buf, static_cast<size_t>(data_size), getNcclDataType<T>(), ncclSum,
                            nccl_param.nccl_comm_, stream));
    if (sync_collectives)
        check_cuda_error(cudaStreamSynchronize(stream));
    FT_LOG_DEBUG("%s stop, %d elements at %p on %p\n", __PRETTY_FUNCTION__, data_size, static_cast<void*>(recv_buf),
                 static_cast<void*>(stream));
}

template<typename T>
ENGINE_FRAME void ftNcclAllGather(const T* send_buf, T* recv_buf, const int data_size, const int rank, NcclParam nccl_param,
                                  cudaStream_t stream) {
    FT_LOG_DEBUG("%s start\n", __PRETTY_FUNCTION__);
    NCCLCHECK(ncclGroupStart());
    NCCLCHECK(ncclAllGather(send_buf + rank * data_size, recv_buf, static_cast<size_t>(data_size), getNcclDataType<T>(),
                            nccl_param.nccl_comm_, stream));
    NCCLCHECK(ncclGroupEnd());
    if (sync_collectives)
        check_cuda_error(cudaStreamSynchronize(stream));
    FT_LOG_DEBUG("%s stop, %d elements at %p on %p\n", __PRETTY_FUNCTION__, data_size, static_cast<void*>(recv_buf),
                 static_cast<void*>(stream));
}

template void ftNcclAllReduceSum(const float*, float*, const int, NcclParam, cudaStream_t);
template void ftNcclAllGather(const float*, float*, const int, const int, NcclParam, cudaStream_t);

ENGINE_FRAME static void ftNcclCommInitRank(NcclParam& param, const int rank, const int world_size) {
    NCCLCHECK(ncclCommInitRank(&param.nccl_comm_, world_size, param.nccl_uid_, rank));
    param.rank_ = rank;
    param.world_size_ = world_size;
}

ENGINE_FRAME void ftNcclInitialize(NcclParam& param, int rank, int world_size, int note) {
    if (rank == 0) {
        NCCLCHECK(ncclGetUniqueId(&param.nccl_uid_));
        job_pin_up(note, param.nccl_uid_.internal, sizeof param.nccl_uid_);
    }
    job_read_note(note, param.nccl_uid_.internal, sizeof param.nccl_uid_);
    ftNcclCommInitRank(param, rank, world_size);
}

ENGINE_FRAME void ftNcclParamAbort(NcclParam& param) {
    NCCLCHECK(ncclCommAbort(param.nccl_comm_));
    param.nccl_comm_ = nullptr;
}

ENGINE_FRAME void ftNcclStreamSynchronize(NcclParam tensor_para, NcclParam pipeline_para, cudaStream_t stream) {
    const uint64_t since = job_now();
    for (;;) {
        const cudaError_t status = cudaStreamQuery(stream);
        if (status == cudaSuccess)
            return;
        if (status != cudaErrorNotReady)
            throw std::runtime_error("[FT][ERROR] cudaStreamQuery failed");
        for (const NcclParam& param : {tensor_para, pipeline_para}) {
            ncclResult_t error = ncclSuccess;
            NCCLCHECK(ncclCommGetAsyncError(param.nccl_comm_, &error));
            if (error != ncclSuccess)
                throw std::runtime_error("[FT][ERROR] NCCL Error : ncclCommGetAsyncError returned an error");
        }
        JOB_WAITED(job_now() - since);
    }
}

}  // namespace fastertransformer
