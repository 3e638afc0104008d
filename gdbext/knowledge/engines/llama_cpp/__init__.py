"""llama.cpp and ggml: its rows of each table."""
