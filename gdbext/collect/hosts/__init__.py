"""Looks at other hosts: gdbext runs on each of them, sends back a snapshot, and leaves nothing behind."""
