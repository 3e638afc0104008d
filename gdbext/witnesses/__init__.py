"""Witnesses besides the stacks, each optional."""
