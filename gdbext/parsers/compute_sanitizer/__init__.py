"""Reports of compute-sanitizer and cuda-memcheck: read as a stream, equal errors counted."""
