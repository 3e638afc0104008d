"""What could not be read of a job, and how much less sure that makes an answer."""
