"""ELF files (elf(5)): one reader, one writer."""
