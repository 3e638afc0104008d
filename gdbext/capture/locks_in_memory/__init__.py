"""Locks in the memory of a process, and who owns them."""
