"""The only reader of gdb."""
