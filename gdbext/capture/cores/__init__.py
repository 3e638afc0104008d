"""Core files: read as the copy of a process, and written as one."""
