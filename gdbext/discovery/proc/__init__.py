"""What /proc says of processes: their table, files, devices, programs and children."""
