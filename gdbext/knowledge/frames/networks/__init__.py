"""Frames of collectives, messages and fabrics."""
