"""Which libraries a process has mapped, and what lies at an address."""
