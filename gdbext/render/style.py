"""How lines may look, and how many there are. Who knows the terminal and the command line fills it in."""

from __future__ import annotations

from dataclasses import dataclass, field

from gdbext.model.command_typed import Typed

ACCENTS = {"bad": "1;31", "doubt": "1;33", "good": "1;32", "strong": "1", "dim": "2", "python": "36"}
"""What a piece of text means, and its SGR parameters. The eight basic colours: readable on dark and on light ground."""


@dataclass(frozen=True)
class Style:
    """`width` in columns, `color` by ANSI sequences, `unicode` False where only ASCII arrives whole.

    `typed`: how much is wanted, and what the command to type next is made of.
    """

    width: int = 100
    color: bool = False
    unicode: bool = True
    typed: Typed = field(default_factory=Typed)

    @property
    def ellipsis(self) -> str:
        return "…" if self.unicode else "..."

    @property
    def times(self) -> str:
        return "×" if self.unicode else "x"

    @property
    def mark(self) -> str:
        """Stands before what the eye should find first: whoever holds up the others, the line that failed."""
        return "▶" if self.unicode else ">"

    @property
    def current(self) -> str:
        """Stands before what is selected, as in gdb's own lists."""
        return "*"

    @property
    def arrow(self) -> str:
        """Stands between one who waits and what is waited for."""
        return "→" if self.unicode else "->"

    def paint(self, text: str, accent: str) -> str:
        """`text` in the colour of `accent` (a key of ACCENTS, or "" for none)."""
        return text if not (self.color and accent and text) else f"\x1b[{ACCENTS[accent]}m{text}\x1b[0m"

    def highlight(self, source: str, language: str = "native") -> str:
        """A snippet of C++ ("native") or Python source in colour; unchanged when colour is off."""
        if not self.color:
            return source
        import pygments  # here: it takes a while to load, and colour is for terminals only
        from pygments.formatters import TerminalFormatter
        from pygments.lexers import CppLexer, PythonLexer

        lexer = {"python": PythonLexer, "native": CppLexer}[language](stripnl=False, ensurenl=False)
        return str(pygments.highlight(source, lexer, TerminalFormatter()))
