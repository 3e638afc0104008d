"""CUDA streams and events of the target."""
