"""Causes that need no graph: log lines, a thread's own fault, witnesses, lengths of lists."""
