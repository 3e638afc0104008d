"""NCCL's communicators in the memory of a rank."""
