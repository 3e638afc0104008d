"""SGLang: what it does not wait for for ever."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import TimeoutRow

TIMEOUTS: Tuple[TimeoutRow, ...] = (
    TimeoutRow(
        "SGLang's watchdog ends a scheduler whose batch takes longer (--watchdog-timeout may set another)",
        300,
        "sglang 0.5.23 srt/arg_groups/fields/device.py: watchdog_timeout, 300; srt/utils/watchdog.py",
        engine="sglang",
    ),
)
