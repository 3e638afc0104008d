"""`gdbext profile`: an engine's own profiler over HTTP, its files, what they say."""
