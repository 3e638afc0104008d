"""The terminal of `gdbext pdb`: edits lines, completes and remembers them, and talks with the rank at the other end."""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, Iterator, List, Optional, Sequence, Tuple

from gdbext.cli.terminal import style_for
from gdbext.commands.user_files import write_private
from gdbext.model.errors import GdbextError
from gdbext.rankpdb.wire import Wire
from gdbext.render.safe_text import clean_line, clean_text

_HISTORY = 1000
_TRIES, _AGAIN = 50, 200  # milliseconds between two
_RUNNING = "[s]top at its next line, resume the [o]thers, [l]eave it alone? "


class _Interrupts:
    """Ctrl-C counts where we wait for somebody, so that none cuts a message in two or is lost between two waits."""

    def __init__(self) -> None:
        self._waiting = self._pending = False
        self.came, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        """Readable once a signal has come, whatever the main thread does then."""
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._before = signal.signal(signal.SIGINT, self._note)

    def close(self) -> None:
        signal.signal(signal.SIGINT, self._before)
        signal.set_wakeup_fd(-1)
        os.close(self.came)
        os.close(self._wake)

    def _note(self, number: int, frame: Optional[FrameType]) -> None:
        self._pending = True
        if self._waiting:
            self._waiting = False  # once: what is cleaned up after it is not interrupted, whichever line it hit
            raise KeyboardInterrupt

    def forget(self) -> None:
        """One that has come and was not welcome yet."""
        self._pending = False

    @contextlib.contextmanager
    def allowed(self) -> Iterator[None]:
        """Here KeyboardInterrupt may be raised."""
        self._waiting = True
        try:
            if self._pending:
                raise KeyboardInterrupt
            yield
        finally:
            self._waiting = self._pending = False


@contextlib.contextmanager
def _interrupted_at_hangup(wire: Wire, interrupts: _Interrupts) -> Iterator[None]:
    """Whoever types is interrupted when the other side goes: the rank has ended, or its time is up. And by Ctrl-C: a
    signal that comes right before the read begins does not end it, and is said again until it is heard. Ctrl-C is
    welcome inside only: while the watcher begins and ends none may be raised, or nobody would end it."""
    said: List[int] = []

    def watch() -> None:
        poll = select.poll()
        poll.register(wire, select.POLLRDHUP)
        poll.register(interrupts.came, select.POLLIN)
        poll.register(theirs, 0)
        early = False
        while not early:
            events = [number for number, _ in poll.poll()]
            if theirs in events:
                return
            if wire.fileno() in events:
                break
            early = signal.SIGINT in os.read(interrupts.came, 1 << 10)
        poll.unregister(wire)
        poll.unregister(interrupts.came)
        has_message = early and bool(poll.poll(_AGAIN))
        while not has_message and len(said) < _TRIES:
            said.append(signal.SIGINT)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            has_message = bool(poll.poll(_AGAIN))

    watcher = threading.Thread(target=watch, daemon=True)
    ours, theirs = os.pipe()
    try:
        with contextlib.suppress(BlockingIOError):
            os.read(interrupts.came, 1 << 10)  # earlier ones
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            watcher.start()  # it inherits that: Ctrl-C goes to the thread that reads
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield
    finally:
        os.close(ours)  # the other end is a writing one
        with contextlib.suppress(RuntimeError):  # it was not started
            watcher.join()
        os.close(theirs)
        if said:
            interrupts.forget()  # ours: the next wait does not end by it


def keep_history(path: Path, lines: Sequence[str]) -> None:
    """Write what was typed. Root may have the HOME of a user (`sudo -E`), where a link could lead anywhere: nothing is
    written into the folder of another user, nor through a link. Raises OSError or GdbextError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.parent.stat().st_uid == os.geteuid() and not path.is_symlink():
        write_private(str(path), "".join(f"{line}\n" for line in lines), force=True)


class Terminal:
    """Edits the lines, completes and remembers them; the rank at the other end only sees whole ones."""

    def __init__(self) -> None:
        self._wire: Optional[Wire] = None
        self._found: List[str] = []
        self._style = style_for(sys.stdout, os.environ)
        self._interrupts = _Interrupts()
        try:  # prints to the terminal when loaded, so not at the top
            self._readline: Any = importlib.import_module("readline")
        except ImportError:
            self._readline = None
            return
        self._readline.set_completer(self._complete)
        self._readline.parse_and_bind("tab: complete")
        self._history = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "gdbext" / "pdb"
        try:
            self._readline.read_history_file(str(self._history))
        except OSError:
            pass  # the first time

    def close(self) -> None:
        """Give Ctrl-C back, and keep the history for the next time; only this user may read it."""
        self._interrupts.close()
        if self._readline is None or not sys.stdin.isatty():
            return
        count = self._readline.get_current_history_length()
        lines = [self._readline.get_history_item(number + 1) or "" for number in range(max(0, count - _HISTORY), count)]
        with contextlib.suppress(OSError, GdbextError):  # a read-only home
            keep_history(self._history, lines)

    def pause(self, seconds: float) -> None:
        """Wait a moment. Raises KeyboardInterrupt."""
        with self._interrupts.allowed():
            time.sleep(seconds)

    def serve_prompt(self, wire: Wire) -> bool:
        """One prompt from its opening to its end. False when nothing more is to be expected."""
        self._wire = wire
        going = True
        while True:
            try:
                with self._interrupts.allowed():
                    message = wire.receive()
            except KeyboardInterrupt:  # the rank is running, or computing what was typed
                if not self._while_running(wire):
                    return False
                continue
            if message is None:
                self._print("gdbext: the rank has ended\n")
                return True
            if "refused" in message:
                raise GdbextError(str(message["refused"]))
            if "out" in message:
                self._print(str(message["out"]))
            if "prompt" in message and not self._answer(wire, str(message["prompt"])):
                going = False
            if "bye" in message:
                self._print(f"gdbext: {message['bye']}\n")
                return going

    def _answer(self, wire: Wire, prompt: str) -> bool:
        """Send what was typed. False when it takes leave: the end of the input, or `quit` to pdb."""
        while True:
            try:
                with _interrupted_at_hangup(wire, self._interrupts), self._interrupts.allowed():
                    line = input(clean_line(prompt, self._style))
            except KeyboardInterrupt:
                self._print("\n")
                if wire.is_gone():
                    return True
                continue
            except EOFError:
                self._print("\n")
                wire.send({"line": None})
                return "Pdb" not in prompt  # in `interact` it leads back to pdb
            wire.send({"line": line})
            return "Pdb" not in prompt or line.strip() not in ("q", "quit", "exit")

    def _while_running(self, wire: Wire) -> bool:
        """Ctrl-C while the rank does not ask for a line. False to leave it."""
        self._print("\n")
        try:
            with self._interrupts.allowed():
                answer = input(_RUNNING) if sys.stdin.isatty() else "s"
        except (KeyboardInterrupt, EOFError):
            answer = "l"
        if answer.startswith("l"):
            wire.close()
            return False
        wire.send({"release": True} if answer.startswith("o") else {"interrupt": True})
        return True

    def _complete(self, text: str, state: int) -> Optional[str]:
        if state == 0 and self._wire is not None:
            line, begin, end = (
                self._readline.get_line_buffer(),
                self._readline.get_begidx(),
                self._readline.get_endidx(),
            )
            self._found = self._candidates((text, line, begin, end))
        return self._found[state] if state < len(self._found) else None

    def _candidates(self, question: Tuple[str, str, int, int]) -> List[str]:
        assert self._wire is not None
        if not self._wire.send({"complete": list(question)}):
            return []
        try:
            answer = self._wire.receive(2.0)
        except socket.timeout:
            answer = None
        return [clean_line(str(word), self._style) for word in (answer or {}).get("completions", ())]

    def _print(self, text: str) -> None:
        sys.stdout.write(clean_text(text, self._style))
        sys.stdout.flush()
