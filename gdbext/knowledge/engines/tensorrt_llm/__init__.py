"""TensorRT-LLM: its rows of each table."""
