"""gdbext: a GDB extension for multi-GPU LLM inference engines."""

__version__ = "0.2.0"

PACKAGES = ("tabulate", "pygments", "elftools")
"""What gdbext cannot do without, by the names that `import` knows. `init.py` has the same list: it runs before this."""
INSTALL = "python3 -m pip install tabulate pygments pyelftools"
"""What a user types when one of them is missing."""
