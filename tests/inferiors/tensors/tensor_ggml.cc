// Tensors as ggml 0.25.3 has them.
#include "ggml_types.h"
#include "truth.h"

static ggml_tensor made(ggml_type type, std::vector<long> ne, std::vector<long> nb, void* data, const char* name)
{
    ggml_tensor tensor = {};
    tensor.type = type;
    for (int i = 0; i < 4; ++i)
    {
        tensor.ne[i] = i < int(ne.size()) ? ne[i] : 1;
        tensor.nb[i] = i < int(nb.size()) ? nb[i] : tensor.nb[i - 1] * tensor.ne[i - 1];
    }
    tensor.data = data;
    snprintf(tensor.name, sizeof tensor.name, "%s", name);
    return tensor;
}

// Two blocks: the scale in fp16, then 32 signed bytes.
static std::vector<double> fill_q8_0(unsigned char* blocks)
{
    std::vector<double> values;
    for (int block = 0; block < 2; ++block)
    {
        uint16_t scale = half(block ? -2.f : 0.5f);
        memcpy(blocks + 34 * block, &scale, 2);
        for (int i = 0; i < 32; ++i)
        {
            blocks[34 * block + 2 + i] = (unsigned char) (i - 16);
            values.push_back((block ? -2.0 : 0.5) * (i - 16));
        }
    }
    return values;
}

__attribute__((noipa)) void compute(Truth& truth, ggml_tensor* argument)
{
    static float floats[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    static unsigned char blocks[68];
    ggml_tensor* volatile node = argument;
    auto quantised_values = fill_q8_0(blocks);
    ggml_tensor plain = made(GGML_TYPE_F32, {4, 3}, {4, 16}, floats, "blk.0.attn_q.weight");
    ggml_tensor turned = made(GGML_TYPE_F32, {3, 4}, {16, 4, 64}, floats, "turned");
    ggml_tensor column = made(GGML_TYPE_F32, {1, 3}, {4, 16}, floats, "column");
    ggml_tensor scalar = made(GGML_TYPE_F32, {1}, {4}, floats + 7, "scalar");
    ggml_tensor quantised = made(GGML_TYPE_Q8_0, {32, 2}, {34, 34}, blocks, "q");
    ggml_tensor other = made(GGML_TYPE_IQ2_XXS, {256, 1}, {66, 66}, blocks, "k2");
    ggml_tensor view = made(GGML_TYPE_F32, {2, 2}, {4, 16}, floats + 5, "view");
    view.view_src = &plain;
    view.view_offs = 20;
    ggml_tensor absent = made(GGML_TYPE_F32, {4, 3}, {4, 16}, nullptr, "not yet allocated");
    ggml_tensor *leafs[] = {&quantised, &absent}, *nodes[] = {&plain, &turned};
    ggml_cgraph graph = {2, 2, 2, nodes, nullptr, nullptr, leafs};
    truth.collection("graph", {"q", "not yet allocated", "blk.0.attn_q.weight", "turned"});
    truth.tensor("graph[\\\"q\\\"]", "q8_0", std::vector<int>{2, 32}, "cpu", quantised_values);
    truth.says("graph[\\\"none\\\"]", "has no tensor");
    truth.tensor("plain", "fp32", std::vector<int>{3, 4}, "cpu", counting(12));
    truth.tensor("node", "fp32", std::vector<int>{3, 4}, "cpu", counting(12));
    truth.tensor("turned", "fp32", std::vector<int>{4, 3}, "cpu", {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, {1, 4}, true);
    truth.tensor("column", "fp32", std::vector<int>{3, 1}, "cpu", {0, 4, 8}, {4, 1}, true);
    truth.tensor("scalar", "fp32", std::vector<int>{1}, "cpu", {7});
    truth.tensor("quantised", "q8_0", std::vector<int>{2, 32}, "cpu", quantised_values);
    truth.tensor("view", "fp32", std::vector<int>{2, 2}, "cpu", {5, 6, 9, 10}, {4, 1}, true);
    truth.says("view", "view_src");
    truth.says("plain", "called blk.0.attn_q.weight");
    truth.says("other", "a ggml block of 256 values in 66 bytes");
    truth.says("absent", "null pointer");
    truth.fuzz("plain", &plain);
    truth.fuzz("view", &view);
    truth.fuzz("quantised", &quantised);
    truth.fuzz("graph", &graph);
    keep(plain), keep(turned), keep(column), keep(scalar), keep(quantised), keep(other), keep(view), keep(absent), keep(node), keep(graph);
    stop_here();
    keep(plain), keep(node);
}

int main(int argc, char** argv)
{
    Truth truth(argc, argv);
    static float floats[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    ggml_tensor argument = made(GGML_TYPE_F32, {4, 3}, {4, 16}, floats, "x");
    compute(truth, &argument);
    return 0;
}
