"""A copy of a process: what it holds, which bytes stacks are, what /proc says of a thread meanwhile."""
