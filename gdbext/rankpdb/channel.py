"""A file-like pair for pdb whose other end is a terminal somewhere else, which edits the lines.

Messages to the terminal: {"out": text}, {"prompt": text}, {"completions": [...]}, {"bye": text}.
From it: {"line": text or null}, {"complete": [text, line, begin, end]}, {"interrupt": true}, {"release": true}.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import Callable, List, Optional

from gdbext.rankpdb.tidying import tidied
from gdbext.rankpdb.wire import AWAKE, Message, Wire

_BACKLOG = 64 << 10
"""Characters of output that a terminal sees which comes later."""


class Channel:
    """`write` and `flush` are pdb's stdout, `readline` its stdin. Without a terminal a `readline` waits for one."""

    encoding = "utf-8"

    def __init__(self, deadline: float) -> None:
        self.on_interrupt: Callable[[], None] = lambda: None
        self.on_release: Callable[[], None] = lambda: None
        self.on_lost: Callable[[], None] = lambda: None
        self.tidy: Callable[[], None] = lambda: None  # when a signal ends the rank while it waits for a line
        self.complete: Callable[[str, str, int, int], List[str]] = lambda text, line, begin, end: []
        self._deadline = deadline
        self._lines: queue.Queue[Optional[str]] = queue.Queue()
        self._wire: Optional[Wire] = None
        self._text = ""  # since the last prompt, for a terminal that comes later
        self._sent = 0
        self._prompt: Optional[str] = None
        self._lock = threading.RLock()
        self.over = False
        self.expired = False

    # --- pdb's side ---

    def write(self, text: str) -> int:
        with self._lock:
            self._text += text
            if "\n" in text:  # as to a terminal
                self.flush()
        return len(text)

    def flush(self) -> None:
        """Send whole lines: what stands on the last one may be a prompt, which the terminal prints itself."""
        with self._lock:
            end = self._text.rfind("\n") + 1
            if self._wire is not None and self._sent < end:
                self._wire.send({"out": self._text[self._sent : end]})
                self._sent = end
            if len(self._text) > _BACKLOG:
                self._text = self._text[-_BACKLOG:]
                self._sent = min(self._sent, len(self._text))

    def isatty(self) -> bool:
        return False

    def readline(self) -> str:
        """A line of the terminal; "" when it said goodbye, is lost, or none came in time."""
        with self._lock:
            # What stands on the last line is the prompt: the terminal prints it, and edits behind it.
            head, _, self._prompt = self._text.rpartition("\n")
            self._text = head + "\n" if head else ""
            self._sent = min(self._sent, len(self._text))
            self._ask()
        with tidied(self.tidy):
            return self._line()

    def _line(self) -> str:
        while not self.over:
            try:
                line = self._lines.get(timeout=max(0.0, min(self._deadline - time.monotonic(), AWAKE)))
            except queue.Empty:
                self.expired = time.monotonic() >= self._deadline
                self.over = self.over or self.expired
                continue
            with self._lock:
                self._prompt, self._text, self._sent = None, "", 0
            if line is None:
                break
            return line + "\n"
        return ""

    def _ask(self) -> None:
        self.flush()
        if self._wire is not None and self._prompt is not None:
            self._wire.send({"prompt": self._prompt})

    # --- the terminal's side ---

    @property
    def has_terminal(self) -> bool:
        return self._wire is not None

    def attach(self, wire: Wire) -> bool:
        """Give the prompt to a terminal; False when another one has it."""
        with self._lock:
            if self._wire is not None:
                return False
            self._wire, self._sent = wire, 0
            self._ask()
        threading.Thread(target=self._read, args=(wire,), name="gdbext-pdb", daemon=True).start()
        return True

    def _read(self, wire: Wire) -> None:
        while True:
            message = wire.receive()
            if message is None:
                break
            self._take(message, wire)
        self.over = True
        self._lines.put(None)
        self.on_lost()

    def _take(self, message: Message, wire: Wire) -> None:
        if "line" in message:
            self._lines.put(message["line"])
        elif "complete" in message:
            wire.send({"completions": self.complete(*message["complete"])})
        elif "interrupt" in message:
            self.on_interrupt()
        elif "release" in message:
            self.on_release()

    def give_up(self) -> None:
        """Wake a `readline` that waits: the prompt is over."""
        self.over = True
        self._lines.put(None)

    def goodbye(self, text: str) -> None:
        """The terminal may go."""
        self.write("" if self._text.endswith("\n") or not self._text else "\n")
        self.flush()
        with self._lock:
            wire, self._wire = self._wire, None
        self.over = True
        if wire is not None:
            wire.send({"bye": text})
            wire.close()
