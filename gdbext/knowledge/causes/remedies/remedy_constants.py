"""Kinds of waits and words that remedies of several causes share."""

SANITIZER = "Compute Sanitizer manual, NVIDIA"
ALLOCATES = ("pinned-host-alloc", "device-alloc", "device-free")
FOR_THE_GPU = ("stream-sync", "event-sync", "device-sync", "kernel-launch", "memcpy-sync", "nccl-group-launch")
CORE_FILE = "its core file (coredumpctl gdb, then `thread apply all bt full`)"
