"""Text without meaning: numbers and ranges in it, function names, expressions."""
