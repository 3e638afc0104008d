"""What one thread does, by its stack; stacks of all ranks as one tree."""
