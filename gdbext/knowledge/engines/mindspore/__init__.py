"""MindSpore: its rows of each table."""
