"""The chaos campaign: gdbext against random faults, and what became of the targets."""
