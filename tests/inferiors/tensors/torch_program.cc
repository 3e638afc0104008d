// A program of the real torch, built with debug information against the wheel's headers.
#include "truth.h"
#include <ATen/ATen.h>
#include <torch/csrc/stable/tensor_struct.h>

static std::vector<double> values_of(const at::Tensor& tensor)
{
    auto plain = tensor.to(at::kDouble).contiguous();
    return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

static void say(Truth& truth, const char* name, const char* dtype, const at::Tensor& tensor)
{
    std::vector<long> strides(tensor.strides().begin(), tensor.strides().end());
    truth.tensor(name, dtype, tensor.sizes(), "cpu", values_of(tensor), strides, !tensor.is_contiguous());
}

struct Outputs {
    at::Tensor hidden;
    std::optional<at::Tensor> residual;
};

__attribute__((noipa)) void forward(Truth& truth, const at::Tensor& argument, at::TensorList many)
{
    at::Tensor plain = at::arange(24, at::kFloat).reshape({2, 3, 4});
    at::Tensor turned = plain.transpose(0, 2);
    at::Tensor halved = at::arange(6, at::kHalf).reshape({2, 3});
    at::Tensor brain = at::arange(6, at::kBFloat16)[3];
    at::Tensor seven = at::arange(128).reshape({2, 2, 2, 2, 2, 2, 2});
    at::Tensor meta = at::empty({2, 3}, at::TensorOptions().device(at::kMeta));
    at::Tensor undefined;
    std::optional<at::Tensor> optional = halved, nothing;
    c10::MaybeOwned<at::Tensor> maybe = c10::MaybeOwned<at::Tensor>::borrowed(plain);
    Outputs outputs{plain, halved};
    at::Tensor* pointer = &plain;
    say(truth, "plain", "fp32", plain);
    say(truth, "turned", "fp32", turned);
    say(truth, "halved", "fp16", halved);
    say(truth, "brain", "bf16", brain);
    say(truth, "seven", "int64", seven);
    say(truth, "optional", "fp16", halved);
    say(truth, "maybe", "fp32", plain);
    say(truth, "pointer", "fp32", plain);
    say(truth, "argument", "int32", argument);
    say(truth, "outputs.residual", "fp16", halved);
    truth.says("meta", "a meta tensor has no values");
    truth.says("undefined", "undefined tensor");
    truth.says("nothing", "empty std::optional");
    truth.collection("many", {"[0]", "[1]"});
    truth.collection("outputs", {"hidden", "residual"});
    keep(plain), keep(turned), keep(halved), keep(brain), keep(seven), keep(meta), keep(undefined), keep(optional);
    keep(nothing), keep(maybe), keep(outputs), keep(pointer), keep(many), keep(argument);
    stop_here();
    keep(plain), keep(argument), keep(many);
}

int main(int argc, char** argv)
{
    Truth truth(argc, argv);
    at::Tensor ones = at::ones({3}, at::kInt);
    std::vector<at::Tensor> many{ones, at::zeros({2})};
    forward(truth, ones, many);
    return 0;
}
