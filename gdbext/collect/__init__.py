"""Processes and core files to a snapshot of the job; runs gdb in batch mode under a deadline."""
