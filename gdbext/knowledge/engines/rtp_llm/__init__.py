"""RTP-LLM: its rows of each table."""
