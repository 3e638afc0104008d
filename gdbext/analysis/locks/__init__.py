"""Waits for locks and connections: who waits, who holds them, the answer of `llm-locks`."""
