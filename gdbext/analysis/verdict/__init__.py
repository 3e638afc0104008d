"""From all threads to the answer about the job."""
