"""vLLM: its rows of each table."""
