"""When a rank that runs is suspected of a loop. A file of its own: the command line loads it, and no rows."""

SPINNING_AFTER = 20.0
"""Seconds at one place from which a rank that runs while all others wait for it is more likely in a loop than at work;
`--spinning-after`."""

LONG_SLEEP = 600.0
"""Seconds of a sleep that somebody who waits for an answer of the sleeper takes for a hang."""
