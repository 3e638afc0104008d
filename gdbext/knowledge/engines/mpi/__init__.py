"""Plain MPI and NCCL programs: its rows of each table."""
