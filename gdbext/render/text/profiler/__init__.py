"""What a profiler was asked and what it wrote, as text."""
