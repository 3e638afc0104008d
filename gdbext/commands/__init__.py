"""Declarations and bodies of the commands: return model objects, never print, never import gdb."""
