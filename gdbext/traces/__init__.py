"""Profiles of ranks: read in pieces, put on one clock, merged, and asked who comes late."""
