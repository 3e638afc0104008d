"""The one place that opens what a target, a core file or a snapshot names: it may be a FIFO, a device, a dead server.

`regular.py` opens regular files and nothing else, `lookup.py` follows a path without leaving the root of its process,
`mounts.py` and `slow_mounts.py` keep a file system that does not answer from holding us, `open_files.py` keeps
files open.
"""
