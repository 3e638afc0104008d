"""Tables of Ascend's profiler: read by header names, judged as any other trace."""
