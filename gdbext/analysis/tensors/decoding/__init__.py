"""Bytes to numbers, for every element type."""
