"""Whether a look is allowed here, asked before anything is touched."""
