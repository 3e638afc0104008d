"""Moving or standing: what went on between two looks, who is slow, idle or at work of its own."""
