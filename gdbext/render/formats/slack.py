"""A message for Slack (mrkdwn): who holds up whom, in so few characters that nothing is cut there.

Slack obeys `<!channel>`, `<@U123>` and `<https://...|text>`: of & < > entities are made, as it asks for. Backticks that
would end the block become apostrophes.
"""

from __future__ import annotations

from typing import List, Optional

from gdbext.model.command_typed import BRIEF, Typed
from gdbext.model.look_origin import Origin
from gdbext.model.verdict import Diagnosis
from gdbext.render.cause_and_confidence import cause_and_confidence
from gdbext.render.safe_text import clean, shorten
from gdbext.render.style import Style
from gdbext.render.text.verdict.verdict import diagnosis_lines

MOST = 3_000
"""Characters of one text block; a message may have 4,000."""
_WIDTH = 90
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"}


def message(diagnosis: Diagnosis, origin: Optional[Origin]) -> List[str]:
    style = Style(_WIDTH, typed=Typed(BRIEF))
    lines = [shorten(line, _WIDTH, style) for line in diagnosis_lines(diagnosis, style, origin)]
    head = clean(cause_and_confidence(diagnosis.verdict.cause, diagnosis.verdict.confidence), style)
    body = [_escaped(line) for line in lines]
    while sum(len(line) + 1 for line in body) > MOST - 200:  # entities are longer than what they stand for
        body.pop()
    return [f"*{_escaped(head).replace('*', '')}*", "```", *body, "```"]


def _escaped(text: str) -> str:
    return "".join(_ENTITIES.get(one, one) for one in text)
