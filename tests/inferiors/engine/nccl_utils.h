/* The engine's layer over NCCL. */
#pragma once

#include "../cuda/nccl/nccl.h"

namespace fastertransformer {

struct NcclParam {
    int rank_ = 0;
    int world_size_ = 1;
    ncclUniqueId nccl_uid_ = {};
    ncclComm_t nccl_comm_ = nullptr;
};

/* When set, every collective's wrapper waits for its stream before it returns. */
extern bool sync_collectives;

template<typename T>
void ftNcclAllReduceSum(const T* send_buf, T* recv_buf, const int data_size, NcclParam nccl_param, cudaStream_t stream);
template<typename T>
void ftNcclAllGather(const T* send_buf, T* recv_buf, const int data_size, const int rank, NcclParam nccl_param,
                     cudaStream_t stream);

/* One unique id is made by rank 0 and read by the others at place `note` of the job's board. */
void ftNcclInitialize(NcclParam& param, int rank, int world_size, int note);
void ftNcclParamAbort(NcclParam& param);
/* Polls the stream and the communicators, as long as there is no error. */
void ftNcclStreamSynchronize(NcclParam tensor_para, NcclParam pipeline_para, cudaStream_t stream);

}  // namespace fastertransformer
