"""Who holds the lock on a file, and who is at the other end of a pipe, socket or message queue: by /proc."""
