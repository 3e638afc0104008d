"""What a wait means: causes, how each shows, what to do."""
