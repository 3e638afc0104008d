"""Threads and frames of what gdb holds, and what they wait for, as a snapshot."""
