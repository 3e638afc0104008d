"""Frames of Python and its libraries."""
