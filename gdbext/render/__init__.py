"""Model objects to lines of text: the only place that knows width and colour."""
