"""Commands and functions as they are typed in gdb: registered, completed, run."""
