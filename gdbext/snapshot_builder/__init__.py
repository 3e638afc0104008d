"""From what was read of a process to its snapshot: the same steps for running ranks, held ranks, cores and texts."""
