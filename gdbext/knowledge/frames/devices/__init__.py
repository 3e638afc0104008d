"""Frames of GPUs and other accelerators."""
