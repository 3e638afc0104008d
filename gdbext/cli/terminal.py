"""Where output goes: the result to stdout, progress to stderr, colour on a terminal only."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import Mapping, Optional, Sequence, TextIO

from gdbext.model.errors import GdbextError
from gdbext.render import Style
from gdbext.render.safe_text import clean_text


def style_for(stream: Optional[TextIO], environ: Mapping[str, str]) -> Style:
    """Width, colour and character set that fit `stream`. Honours NO_COLOR, CLICOLOR_FORCE, TERM=dumb, COLUMNS."""
    terminal = stream is not None and stream.isatty()
    color = (terminal or environ.get("CLICOLOR_FORCE", "0") != "0") and not environ.get("NO_COLOR")
    color = color and environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size((100, 50)).columns if terminal or environ.get("COLUMNS") else 120
    encoding = (getattr(stream, "encoding", "") or "").lower()
    return Style(width=max(60, min(width, 200)), color=color, unicode=encoding.startswith("utf"))


class Progress:
    """One line per step on stderr; silent with --quiet. Names of a target in it are made safe."""

    def __init__(self, quiet: bool = False, stream: Optional[TextIO] = None) -> None:
        self._quiet = quiet
        self._stream = stream or sys.stderr

    def say(self, text: str) -> None:
        if not self._quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """What is said with --quiet too."""
        # A closed stderr (terminal gone) must not end the work that releases the targets.
        if self._stream is None:  # closed before we were started
            return
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"gdbext: {clean_text(text, Style())}\n")
            self._stream.flush()


def write_lines(lines: Sequence[str], stream: Optional[TextIO] = None) -> None:
    """Print the result. A reader that went away (`| head`) is no error; a full disk or a closed stdout is one."""
    out = stream or sys.stdout
    if out is None:
        raise GdbextError("stdout is closed, so the answer is lost", "keep it with --output FILE")
    try:
        out.write("\n".join(lines) + "\n")
        out.flush()
    except OSError as error:
        # Python flushes stdout once more at exit; give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise GdbextError(f"cannot write the answer to stdout: {error.strerror}") from None
