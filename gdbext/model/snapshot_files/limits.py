"""How much of a saved or pasted job is judged. What is beyond is left out, and the answer says how much that is."""

PROCESSES = 65_536
THREADS = 300_000
FRAMES = 2_000_000
"""That are different, or stand for themselves, in all processes together: some 600 MB."""

PLACED = 10_000_000
"""Frames of all threads, equal ones of several threads too."""

NUMBERS = 10_000_000
"""In the tables of stacks: some 400 MB."""

FRAMES_OF_A_THREAD = 16_384
"""Innermost first; a deeper recursion says nothing more."""

OBJECTS = 1_000_000
"""Locks, communicators, statements, ... of a saved snapshot. A look finds a few in each thread."""

TEXTS = 5_000_000
"""Items of its lists and mappings: libraries, variables, problems, ..."""

LONGEST_TEXT = 1 << 16
"""Characters. Names of real programs reach some ten thousand."""

INTEGER = 1 << 128
"""Numbers reach 64 bits; a captured __int128 has twice as many."""

FLOAT = 1e18
YEAR_10000 = 253_402_300_800.0
"""Seconds since the epoch: later times have no date."""
