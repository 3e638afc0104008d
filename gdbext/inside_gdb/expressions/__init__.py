"""What a typed expression or name is: of the program's language or of a Python frame, in host or device memory."""
