"""What depends on the machine of a process: its registers, and what its code says."""
