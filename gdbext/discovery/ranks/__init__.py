"""From processes to the ranks of one job."""
