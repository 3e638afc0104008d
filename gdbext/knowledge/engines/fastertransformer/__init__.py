"""FasterTransformer: its rows of each table."""
