"""Holds torch tensors in the local variables of nested functions, and waits. Says where two of its objects lie."""

import collections
import functools
import os
import sys
import threading
import types
import warnings
import weakref

import numpy
import torch

warnings.simplefilter("ignore")

at_the_top = torch.ones(2)  # the top level of a module: not a local variable


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.linears = torch.nn.ModuleList([torch.nn.Linear(1, 1, bias=False)])
        torch.nn.init.constant_(self.linear.weight, 0.25)
        self.heads = torch.nn.ModuleDict({"a": torch.nn.Linear(1, 1, bias=False)})
        self.scales = torch.nn.ParameterDict({"k": torch.nn.Parameter(torch.ones(2))})
        self.biases = torch.nn.ParameterList([torch.nn.Parameter(torch.full((1,), 4.0))])
        self.register_buffer("cache", torch.zeros(3, dtype=torch.uint8))

    @property
    def computed(self):
        return self.cache

    def forward(self, hidden, scale=None):
        password = "not a tensor"
        transposed = hidden.t()
        self.hidden = hidden
        self.queue = collections.deque([hidden + 1], maxlen=4)
        config = types.SimpleNamespace(scale=hidden[0] + 2)
        later = functools.partial(print, hidden[1] + 3)
        owner = weakref.ref(self)
        uneven = torch.arange(4) + int(os.environ.get("RANK", "0"))
        kv = [hidden, (transposed, {"k": hidden[1]})]
        batch = {"ids": numpy.arange(6, dtype=numpy.int16).reshape(2, 3), 7: hidden, "mask": None}
        other_order, steps = numpy.arange(3, dtype=">i4"), numpy.arange(24.0).reshape(4, 6)[::2, 1::2]
        state = {"layers.0.weight": self.linear.weight, "layers.0.bias": self.linear.bias}
        count, rate, circle = 3, 0.5, []
        circle.append(circle)
        kinds = [
            torch.quantize_per_tensor(hidden, 0.25, 10, torch.quint8),
            torch.quantize_per_channel(hidden, torch.tensor([0.5, 0.25]), torch.tensor([0, 1]), 0, torch.qint8),
            hidden.to_sparse(),
            hidden.to_sparse_csr(),
            torch.zeros(2, 2).to_sparse(),
        ]
        shared = torch.arange(4, dtype=torch.int16)
        empty = torch.empty(0, 3, dtype=torch.bfloat16)

        def inner(weight):
            ready(hidden=id(hidden), shared=id(shared))
            return weight, shared, empty

        return (
            inner(torch.nn.Parameter(torch.full((2, 2), 0.5))),
            password,
            kv,
            kinds,
            batch,
            other_order,
            steps,
            state,
            config,
            later,
            owner,
            uneven,
            count,
            rate,
            scale,
        )


def ready(**objects):
    sys.stdout.write("ready {hidden:#x} {shared:#x}\n".format(**objects))
    sys.stdout.flush()
    sys.stdin.read()


def elsewhere(started):
    on_another_thread = torch.zeros(7, dtype=torch.float64)
    started.set()
    threading.Event().wait()
    return on_another_thread


started = threading.Event()
threading.Thread(target=elsewhere, args=(started,), daemon=True).start()
started.wait()
Layer()(torch.arange(6, dtype=torch.float32).reshape(2, 3))
