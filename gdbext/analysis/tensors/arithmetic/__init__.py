"""Who does the arithmetic: numpy here, a helper with numpy, or plain Python."""
