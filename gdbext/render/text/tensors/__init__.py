"""Tensors as text."""
