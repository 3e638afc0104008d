"""Dumps of tensors that engines and torch write: keys, layouts of folders, file formats."""
