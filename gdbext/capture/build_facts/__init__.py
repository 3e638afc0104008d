"""How object files were built: their names, debug information, compilers' options and frame pointers."""
