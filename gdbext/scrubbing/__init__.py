"""Secrets in command lines, environments and answers: found and taken out before anything is shared."""
