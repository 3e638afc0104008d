"""gdbext: a GDB extension for multi-GPU LLM inference engines."""

__version__ = "0.1.0"
