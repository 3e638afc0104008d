"""What somebody meant who mistyped a name: the answers to unknown commands, options, labels and engines."""

from __future__ import annotations

from typing import Iterable

from gdbext.model.errors import UsageError


def unknown_word_error(sort: str, word: str, known: Iterable[str], otherwise: str, prefix: str = "") -> UsageError:
    """`unknown command 'diagnos'. Did you mean 'diagnose'?`

    `sort` is what the word should have been, `known` all names there are, `otherwise` the next step where none of them
    is near, `prefix` the command that was typed, where the error does not stand in its answer anyway.
    """
    import difflib  # here: every start of gdb loads this module, and few mistype

    names = list(dict.fromkeys(known))
    lower = {name.lower(): name for name in reversed(names)}
    found = difflib.get_close_matches(word.lower(), lower, 2, 0.85) or difflib.get_close_matches(word.lower(), lower, 1)
    similar = [lower[one] for one in found]
    similar = similar or [name for name in names if word and name.lower().startswith(word.lower())][:2]
    hint = f"Did you mean {' or '.join(map(repr, similar))}?" if similar else otherwise
    return UsageError(f"{prefix}unknown {sort} '{word}'", hint)
