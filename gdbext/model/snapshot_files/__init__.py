"""The file format of a saved snapshot: written, read piece by piece, every field checked."""
