// A forward pass of the real ggml over the weights of a GGUF file; it stops inside of it.
// Usage: ggml_program TRUTH MODEL
#include "ggml_types.h"
#include "truth.h"

struct ggml_context;
struct gguf_context;
struct ggml_init_params {
    size_t mem_size;
    void* mem_buffer;
    bool no_alloc;
};
struct gguf_init_params {
    bool no_alloc;
    ggml_context** ctx;
};
typedef void (*ggml_custom1_op_t)(ggml_tensor* dst, const ggml_tensor* a, int ith, int nth, void* userdata);
extern "C" {
gguf_context* gguf_init_from_file(const char* path, gguf_init_params params);
int64_t gguf_get_n_tensors(const gguf_context* file);
const char* gguf_get_tensor_name(const gguf_context* file, int64_t number);
ggml_context* ggml_init(ggml_init_params params);
ggml_tensor* ggml_get_tensor(ggml_context* context, const char* name);
ggml_tensor* ggml_new_tensor_1d(ggml_context* context, int type, int64_t length);
ggml_tensor* ggml_set_name(ggml_tensor* tensor, const char* name);
ggml_tensor* ggml_mul_mat(ggml_context* context, ggml_tensor* weight, ggml_tensor* input);
ggml_tensor* ggml_add(ggml_context* context, ggml_tensor* a, ggml_tensor* b);
ggml_tensor* ggml_map_custom1(ggml_context* context, ggml_tensor* a, ggml_custom1_op_t op, int tasks, void* userdata);
ggml_cgraph* ggml_new_graph(ggml_context* context);
void ggml_build_forward_expand(ggml_cgraph* graph, ggml_tensor* result);
int ggml_graph_n_nodes(ggml_cgraph* graph);
int ggml_graph_compute_with_ctx(ggml_context* context, ggml_cgraph* graph, int threads);
}

static std::vector<double> floats_of(const ggml_tensor* tensor)
{
    auto* data = static_cast<const float*>(tensor->data);
    return {data, data + tensor->ne[0]};
}

struct Pass {
    Truth& truth;
    ggml_cgraph* graph;
    ggml_tensor* input;
};

// A node of the graph: what was computed before it is there, what comes after it is not.
__attribute__((noipa)) static void in_the_middle(ggml_tensor* dst, const ggml_tensor* a, int, int, void* userdata)
{
    auto& pass = *static_cast<Pass*>(userdata);
    ggml_cgraph* graph = pass.graph;
    memcpy(dst->data, a->data, sizeof(float) * size_t(a->ne[0]));
    pass.truth.tensor("a", "fp32", std::vector<long>{a->ne[0]}, "cpu", floats_of(a));
    pass.truth.tensor("graph[\\\"sum\\\"]", "fp32", std::vector<long>{a->ne[0]}, "cpu", floats_of(a));
    pass.truth.tensor("pass.input", "fp32", std::vector<long>{pass.input->ne[0]}, "cpu", floats_of(pass.input));
    pass.truth.says("graph", ("\\\"total\\\": " + std::to_string(graph->n_leafs + ggml_graph_n_nodes(graph))).c_str());
    keep(graph), keep(dst), keep(a);
    stop_here();
    keep(graph), keep(dst), keep(a);
}

int main(int argc, char** argv)
{
    if (argc != 3)
        return 2;
    Truth truth(argc, argv);
    ggml_context* weights = nullptr;
    gguf_context* file = gguf_init_from_file(argv[2], {false, &weights});
    ggml_context* context = ggml_init({16 << 20, nullptr, false});
    if (!file || !context)
        return 3;
    ggml_tensor* input = ggml_set_name(ggml_new_tensor_1d(context, GGML_TYPE_F32, 256), "input");
    for (int i = 0; i < 256; ++i)
        static_cast<float*>(input->data)[i] = float(i % 5 - 2);
    ggml_tensor* sum = nullptr;
    for (int64_t i = 0; i < gguf_get_n_tensors(file); ++i)
    {
        const char* name = gguf_get_tensor_name(file, i);
        ggml_tensor* product = ggml_mul_mat(context, ggml_get_tensor(weights, name), input);
        sum = sum ? ggml_add(context, sum, product) : product;
    }
    ggml_set_name(sum, "sum");
    ggml_cgraph* graph = ggml_new_graph(context);
    Pass pass{truth, graph, input};
    ggml_tensor* result = ggml_map_custom1(context, sum, in_the_middle, 1, &pass);
    ggml_build_forward_expand(graph, ggml_set_name(ggml_add(context, result, result), "result"));
    return ggml_graph_compute_with_ctx(context, graph, 1);
}
