"""TurboMind: which member of an object holds a stream."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import Current, Holder

HOLDERS: Tuple[Holder, ...] = (Holder(r"turbomind::core::Stream", "impl_.stream_", "TurboMind core/stream.h"),)

EVENT_HOLDERS: Tuple[Holder, ...] = (Holder(r"turbomind::core::Event", "impl_.event_", "TurboMind core/stream.h"),)

CURRENT: Tuple[Current, ...] = (
    Current(
        r"turbomind::",
        "*('turbomind::core::(anonymous namespace)::ContextStorage::instance()'::inst"
        ".stream_.c._M_impl._M_finish._M_cur - 1)",
        "TurboMind's current stream",
        "TurboMind core/context.cc since 0.8: a std::stack, whose top lies before its end",
    ),
)
