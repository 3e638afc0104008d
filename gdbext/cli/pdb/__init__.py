"""`gdbext pdb`: breakpoints for Python ranks, from any terminal."""
