"""Text of other tools to snapshots."""
