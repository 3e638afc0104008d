"""Holds torch tensors in the local variables of nested functions, and waits. Says where two of its objects lie."""

import sys
import threading

import torch

at_the_top = torch.ones(2)  # the top level of a module: not a local variable


class Layer(torch.nn.Module):
    def forward(self, hidden, scale=None):
        password = "not a tensor"
        transposed = hidden.t()
        shared = torch.arange(4, dtype=torch.int16)
        empty = torch.empty(0, 3, dtype=torch.bfloat16)

        def inner(weight):
            ready(hidden=id(hidden), shared=id(shared))
            return weight, shared, empty

        return inner(torch.nn.Parameter(torch.full((2, 2), 0.5))), password, transposed, scale


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
