"""SGLang: its rows of each table."""
