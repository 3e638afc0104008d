"""Calls of functions in the target, when the user allows them."""
