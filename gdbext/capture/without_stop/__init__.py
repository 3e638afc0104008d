"""What can be read of a process that nobody stops."""
