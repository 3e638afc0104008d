"""Two tensors, or one over ranks: the same or not."""
