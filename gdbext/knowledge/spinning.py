"""When a rank that runs is suspected of a loop. A file of its own: the command line loads it, and no rows."""

SPINNING_AFTER = 20.0
"""Seconds at one place from which a rank that runs while all others wait for it is more likely in a loop than at work;
`--spinning-after`."""

LONG_SLEEP = 600.0
"""Seconds of a sleep that somebody who waits for an answer of the sleeper takes for a hang."""

MOMENT = 0.0001
"""Seconds of a sleep that is as good as sched_yield(2): who asks for so little looks again at memory that another one
is to change."""
SHORT_SLEEP = 0.01
"""Seconds of a sleep of who looks again and again whether there is room; who sends at a rate sleeps for longer."""
MOST_OF_A_MOMENT = 10 * MOMENT
"""Seconds from one wake-up to the next that such sleeps take at most, with what the kernel adds to them."""
