"""What a user gives to read: files, folders, standard input."""
