"""CPython, glibc, NCCL, CUDA and Linux from outside: layouts, names and numbers."""
