"""Where output goes: the result to stdout, progress to stderr, colour on a terminal only."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import List, Mapping, Optional, Sequence, TextIO

from gdbext.model.errors import GdbextError
from gdbext.render import Style
from gdbext.render.safe_text import clean_text, shorten


def style_for(stream: Optional[TextIO], environ: Mapping[str, str]) -> Style:
    """Width, colour and character set that fit `stream`. Honours NO_COLOR, CLICOLOR_FORCE, TERM=dumb, COLUMNS."""
    terminal = stream is not None and stream.isatty()
    color = (terminal or environ.get("CLICOLOR_FORCE", "0") != "0") and not environ.get("NO_COLOR")
    color = color and environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size((100, 50)).columns if terminal or environ.get("COLUMNS") else 120
    encoding = (getattr(stream, "encoding", "") or "").lower()
    return Style(width=max(60, min(width, 250)), color=color, unicode=encoding.startswith("utf"))


class Progress:
    """One line per step on stderr; silent with --quiet. Names of a target in it are made safe.

    `one_line`: on a terminal each step takes the place of the one before, and the last is wiped away. It is written
    here, in a few lines: tqdm takes 37 ms to load, longer than most steps, and needs to know how many there are.
    """

    def __init__(self, quiet: bool = False, stream: Optional[TextIO] = None, one_line: bool = False) -> None:
        self._quiet = quiet
        self._stream = stream or sys.stderr
        self._one_line = one_line and can_rewrite_line(self._stream, os.environ)

    def say(self, text: str) -> None:
        """A step."""
        if self._quiet:
            return
        if not self._one_line:
            self.warn(text)
            return
        room = shutil.get_terminal_size((80, 24)).columns - 1
        shown = shorten(" ".join(clean_text(f"gdbext: {text}", _PLAIN).split()), room, _PLAIN)
        self._write(f"\r\x1b[K{shown}")
        if self._stream not in _OPEN:
            _OPEN.append(self._stream)

    def note(self, text: str) -> None:
        """What shall be there to be read later; not with --quiet."""
        if not self._quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """What is said with --quiet too."""
        erase_line()
        self._write(f"gdbext: {clean_text(text, Style())}\n")

    def _write(self, text: str) -> None:
        # A closed stderr (terminal gone) must not end the work that releases the targets.
        if self._stream is None:  # closed before we were started
            return
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


_PLAIN = Style(unicode=False)
_OPEN: List[TextIO] = []
"""Terminals whose last line is a step that nothing has taken the place of yet."""


def can_rewrite_line(stream: Optional[TextIO], environ: Mapping[str, str]) -> bool:
    """Whether a line on the stream can be written anew: on a terminal that obeys."""
    return stream is not None and stream.isatty() and environ.get("TERM", "dumb") != "dumb"


def erase_line() -> None:
    """Take the last step away: something that stays comes in its place."""
    while _OPEN:
        with contextlib.suppress(OSError, ValueError):
            stream = _OPEN.pop()
            stream.write("\r\x1b[K")
            stream.flush()


def write_lines(lines: Sequence[str], stream: Optional[TextIO] = None) -> None:
    """Print the result. A reader that went away (`| head`) is no error; a full disk or a closed stdout is one."""
    erase_line()
    out = stream or sys.stdout
    if out is None:
        raise GdbextError("stdout is closed, so the answer is lost", "use --output FILE")
    try:
        out.write("\n".join(lines) + "\n")
        out.flush()
    except OSError as error:
        # Python flushes stdout once more at exit; give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise GdbextError(f"cannot write the answer to stdout: {error.strerror}") from None
