"""Code of NVIDIA's GPUs: fat binaries of object files, the cubins in them, and which line an instruction is of."""
