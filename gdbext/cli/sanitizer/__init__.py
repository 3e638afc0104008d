"""`gdbext run --sanitizer`: a program under compute-sanitizer, and what its reports say."""
