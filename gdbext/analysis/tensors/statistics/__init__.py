"""Statistics of a tensor of any size."""
