"""The `gdbext` shell command: runs gdb under a deadline, never imports it."""
