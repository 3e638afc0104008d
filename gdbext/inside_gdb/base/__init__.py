"""gdb itself: its settings, values, memory and symbols."""
