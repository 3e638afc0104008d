"""Stop, copy, release: a process is held for milliseconds and read from the copy."""
