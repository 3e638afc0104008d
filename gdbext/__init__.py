"""gdbext: a GDB extension for multi-GPU LLM inference engines."""

__version__ = "0.2.0"
