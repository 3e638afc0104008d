"""torch: its rows of each table."""
