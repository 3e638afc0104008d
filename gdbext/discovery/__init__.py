"""Which processes are ranks of which job: /proc only, nothing is stopped."""
