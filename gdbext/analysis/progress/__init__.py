"""Moving or standing: what moved between two samples, who is slow, idle or at work of its own."""
