"""Commands as declarations and bodies that return model objects."""
