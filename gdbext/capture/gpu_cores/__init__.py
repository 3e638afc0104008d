"""GPU core dumps, read by their sections alone."""
