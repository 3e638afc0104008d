"""Progress between two samples: which ranks moved, and which are slow, idle or busy on their own."""
