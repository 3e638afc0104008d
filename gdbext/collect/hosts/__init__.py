"""Looks of other hosts: one program of ours runs on each, sends its snapshot, and leaves nothing there."""
