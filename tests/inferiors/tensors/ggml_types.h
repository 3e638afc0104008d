// ggml's tensor and graph at the offsets of 0.25.3.
#pragma once
#include <cstddef>
#include <cstdint>

enum ggml_type {
    GGML_TYPE_F32 = 0, GGML_TYPE_F16 = 1, GGML_TYPE_Q4_0 = 2, GGML_TYPE_Q8_0 = 8, GGML_TYPE_IQ2_XXS = 16,
    GGML_TYPE_Q4_K = 12, GGML_TYPE_I32 = 26, GGML_TYPE_BF16 = 30, GGML_TYPE_COUNT = 43,
};
enum ggml_op { GGML_OP_NONE };
struct ggml_backend_buffer;
struct ggml_tensor {
    enum ggml_type type;
    struct ggml_backend_buffer* buffer;
    int64_t ne[4];
    size_t nb[4];
    enum ggml_op op;
    int32_t op_params[16];
    int32_t flags;
    struct ggml_tensor* src[10];
    struct ggml_tensor* view_src;
    size_t view_offs;
    void* data;
    char name[64];
    void* extra;
    char padding[8];
};
static_assert(sizeof(ggml_tensor) == 336 && offsetof(ggml_tensor, ne) == 16 && offsetof(ggml_tensor, nb) == 48
    && offsetof(ggml_tensor, view_src) == 232 && offsetof(ggml_tensor, data) == 248
    && offsetof(ggml_tensor, name) == 256 && offsetof(ggml_tensor, extra) == 320);
struct ggml_cgraph {
    int size;
    int n_nodes;
    int n_leafs;
    struct ggml_tensor** nodes;
    struct ggml_tensor** grads;
    struct ggml_tensor** grad_accs;
    struct ggml_tensor** leafs;
};
static_assert(offsetof(ggml_cgraph, nodes) == 16 && offsetof(ggml_cgraph, leafs) == 40);
