"""A stand-in for SGLang's package of CPU kernels, which no registry has: `sgl_kernel/__init__.py` of the environment.

What attention by torch alone needs is here; every other name can be imported, and fails when it is called.
"""


def assign_req_to_token_pool_cpu(requests, table, starts, ends, places, *_):
    at = 0
    for request, start, end in zip(requests.tolist(), starts.tolist(), ends.tolist()):
        table[request, start:end] = places[at : at + end - start].to(table.dtype)
        at += end - start


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_, **__):
        raise NotImplementedError(f"the stand-in has no sgl_kernel.{name}")

    return missing
