"""Stop a process, copy its stacks, let it go."""
