"""Arguments and titles without the secrets in them."""

from __future__ import annotations

import re
from typing import Iterable, List, Tuple

from gdbext.model.text.patterns import regex

MASK = "***"
TITLE_LENGTH = 200
"""Characters of a title that go into a snapshot."""

_LONGEST_ARGUMENT = 4096
_WORD = r"(?<![A-Za-z0-9])(?:token|password|passwd|pwd|passphrase|secret|credentials?|api[-_]?keys?|auth|bearer|key)"
_OPTION = regex(rf"^--?[\w.-]{{0,80}}?{_WORD}$", re.IGNORECASE)
_MANY_VALUES = regex(r"api[-_]?keys?$", re.IGNORECASE)
_TEXT = (
    # --hf-token=X, API_KEY=X, "api_key": "X", and "--token X" inside one string
    (regex(rf"({_WORD}[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&}}]+", re.IGNORECASE), rf"\1{MASK}"),
    (regex(rf"((?:^|\s)-[\w.-]{{0,80}}?{_WORD}\s+)(?!-)\S+", re.IGNORECASE), rf"\1{MASK}"),
    (regex(r"(\w://)[^\s/@]+@"), rf"\1{MASK}@"),
    (regex(r"(\bBearer\s+)\S+", re.IGNORECASE), rf"\1{MASK}"),
    # shapes of tokens: Hugging Face, OpenAI, GitHub, GitLab, AWS, Slack, JSON web tokens
    (regex(r"\b(?:hf_|sk-|gh[pousr]_|github_pat_|glpat-|xox[abpr]-|nvapi-)[\w-]{12,}"), MASK),
    (regex(r"\bA(?:KIA|SIA)[A-Z0-9]{12,}\b"), MASK),
    (regex(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), MASK),
)


def scrub(arguments: Iterable[str]) -> Tuple[str, ...]:
    """The same arguments with values of tokens, passwords and keys replaced by `***`: rather too many than too few."""
    clean: List[str] = []
    hidden = 0
    many = False
    for argument in arguments:
        if hidden and not argument.startswith("-"):
            clean.append(MASK)
            hidden = 1 if many else 0
            continue
        hidden = 1 if _OPTION.match(argument) else 0
        many = bool(hidden and _MANY_VALUES.search(argument))
        clean.append(argument if hidden else scrub_text(argument))
    return tuple(clean)


def scrub_text(text: str) -> str:
    """One string (a title, a shell command, the value of a variable) without its secrets."""
    for pattern, replacement in _TEXT:
        text = pattern.sub(replacement, text)
    return text


def title_of(arguments: Iterable[str]) -> str:
    """The title of a process as it may be shown and saved: scrubbed, on one line, of bounded length."""
    title = " ".join(" ".join(scrub(argument[:_LONGEST_ARGUMENT] for argument in arguments)).split())
    return title if len(title) <= TITLE_LENGTH else title[: TITLE_LENGTH - 3] + "..."
