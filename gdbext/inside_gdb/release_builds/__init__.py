"""Tensors of engines in libraries without debug information: by tables of offsets, from registers and the stack."""
