"""CPython in the memory of another process."""
