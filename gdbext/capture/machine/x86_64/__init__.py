"""x86-64 (System V ABI)."""
