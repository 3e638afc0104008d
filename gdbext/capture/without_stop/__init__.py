"""What can be read from a process without stopping it."""
