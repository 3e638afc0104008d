"""The wait-for graph: built from one look, read as a verdict."""
