"""Communicators of all ranks, and what their counts prove."""
