"""Python frames of what gdb has selected, and which of them is the selected one."""
