"""Hangs that a program makes for itself: tasks of event loops, the GIL, children that were killed."""
