"""Answers as one HTML page."""
