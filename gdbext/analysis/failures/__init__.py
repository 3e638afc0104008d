"""Failed checks and error numbers: what they mean."""
