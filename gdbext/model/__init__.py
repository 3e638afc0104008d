"""Plain frozen data: what was read, what it means, what to say. No behaviour beyond small properties."""
