"""The commands, a file for each noun: rows of `declaration`, which gdb and the shell both read."""
