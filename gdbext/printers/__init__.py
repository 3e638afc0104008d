"""Pretty-printers for gdb."""
