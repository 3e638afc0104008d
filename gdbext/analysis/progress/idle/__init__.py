"""Idle programs: servers without requests, and threads in loops without an end."""
