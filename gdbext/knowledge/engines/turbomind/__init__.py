"""TurboMind: its rows of each table."""
