"""Python frames of what gdb has selected: which of them is the selected one, and what its names mean."""
