"""The ranks that this gdb holds, and everything that was begun with them: one object, which the commands ask."""
