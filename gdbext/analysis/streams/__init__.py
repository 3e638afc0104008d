"""CUDA streams as memory, calls and frames show them."""
