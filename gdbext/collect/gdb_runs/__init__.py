"""gdb in batch mode: started under a deadline, told what to read, believed only in its result records."""
