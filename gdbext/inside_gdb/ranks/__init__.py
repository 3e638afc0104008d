"""Ranks as inferiors: attached, held, released."""
