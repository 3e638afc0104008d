"""Log lines of a look: which of them a row knows, and how far ranks came by their counts."""
