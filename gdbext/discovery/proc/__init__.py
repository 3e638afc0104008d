"""What /proc says of processes, their files and their connections."""
