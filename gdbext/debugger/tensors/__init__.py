"""Tensors of the target."""
