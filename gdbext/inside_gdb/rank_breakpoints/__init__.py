"""Breakpoints for some ranks while the others are held."""
