"""The memory of another process, and what is mapped where."""
