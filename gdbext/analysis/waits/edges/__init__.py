"""Which edges the wait-for graph gets: locks, meetings, queues, whole idioms."""
