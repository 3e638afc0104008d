"""One folder per engine: how it looks in /proc and on stacks, its tensors, checks, time limits, streams and build."""
