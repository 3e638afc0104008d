"""Frames of the C library and of Linux."""
