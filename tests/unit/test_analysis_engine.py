"""Which engine the stacks show."""

import pytest
from stacks import stack

from gdbext.analysis.stacks.engine import engine_of


@pytest.mark.parametrize(
    ("functions", "known", "engine"),
    [
        (["fastertransformer::ParallelGpt<float>::forward", "main"], "mpi", "fastertransformer"),
        (["rtp_llm::NormalEngine::step", "fastertransformer::Tensor::size"], None, "rtp-llm"),
        (["tensorrt_llm::_v1::common::check"], "mpi", "tensorrt-llm"),
        (["ggml_graph_compute"], None, "llama-cpp"),
        (["fastertransformer::x"], "vllm", "vllm"),  # a known engine stays
        (["main", "poll"], "mpi", "mpi"),
        (["main"], None, None),
        ([], "torch", "torch"),
    ],
)
def test_engine(functions, known, engine):
    assert engine_of([stack(*(f"{function}@engine" for function in functions))], known) == engine
