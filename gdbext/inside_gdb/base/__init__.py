"""gdb itself: its commands, settings, values, memory and symbols."""
