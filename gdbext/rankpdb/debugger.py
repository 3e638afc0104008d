"""pdb in one rank, over a channel or in the foreground. Leaving it never ends the rank, unless `kill` is typed."""

from __future__ import annotations

import code
import contextlib
import ctypes
import pdb
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Callable, List, Optional, Tuple, cast

from gdbext.rankpdb.channel import Channel
from gdbext.rankpdb.collectives import called_at

HELP = """The other ranks wait until you type `continue` (c), `quit` (q) or Ctrl-D; then every rank resumes.
release   resume the other ranks now and stay at this prompt. Type it before you step over a collective with `next`;
          if you forgot and `next` hangs, run in another terminal: gdbext pdb --release
kill      end this rank, as pdb's own quit does"""

_LONG = 5.0  # seconds of a step, until it is said that others are held
RELEASE_HINT = "in another terminal: gdbext pdb --release"
_SKIP = ["gdbext.rankpdb", "gdbext.rankpdb.*"]


class _Interrupt(KeyboardInterrupt):
    """Not KeyboardInterrupt itself: when that leaves an `exec`, CPython ends the process by SIGINT at its very end
    (pythonrun.c, _Py_UnhandledKeyboardInterrupt), although it was caught."""


class RankPdb(pdb.Pdb):
    """`on_leave` is called once, when the others need not wait any more."""

    def __init__(
        self, channel: Optional[Channel], on_leave: Callable[[], None], held: Callable[[], str] = lambda: ""
    ) -> None:
        """`held`: the ranks that wait for this prompt, like "ranks 0, 2 are"; "" when there are none."""
        # rc files are commands of a person at a terminal of his own, not of a service.
        far, stream = channel is not None, cast(Any, channel)
        super().__init__(skip=_SKIP, stdin=stream, stdout=stream, nosigint=far, readrc=not far)
        self._on_leave, self._left, self._held = on_leave, False, held
        self._warned: Optional[Tuple[CodeType, int]] = None  # where a step over a collective was held back once
        self._stepping: Optional[threading.Timer] = None
        self._thread = threading.get_ident()
        self._busy = False  # evaluates what was typed
        self._channel: Optional[Channel] = None
        if channel is not None:
            self.use_rawinput = False
            self.prompt = "(Pdb) "
            self.use(channel)

    def use(self, channel: Channel) -> None:
        """Talk over this channel from now on; others wait for its prompt."""
        self._channel, self._left = channel, False
        self.stdin = self.stdout = cast(Any, channel)
        channel.on_interrupt, channel.on_release, channel.on_lost = self._interrupt, self.leave, self.leave
        channel.complete = self._candidates

    def leave(self) -> None:
        """The other ranks go on; also called from the thread that reads the terminal."""
        if not self._left:
            self._left = True
            self._on_leave()

    def block_others(self) -> None:
        """Others wait for this prompt again."""
        self._left = False

    # --- what pdb calls ---

    def set_continue(self) -> None:
        channel = self._channel
        super().set_continue()
        self.leave()
        if channel is not None and not self.breaks:
            channel.goodbye("the time is up: the rank resumes" if channel.expired else "the rank resumes")

    def do_quit(self, arg: str) -> Optional[bool]:
        """quit: stop debugging; this rank and the others go on."""
        self.clear_all_breaks()
        self.set_continue()
        return True

    do_q = do_exit = do_EOF = do_quit

    def do_release(self, arg: str) -> None:
        """release: the other ranks go on, this one stays here."""
        self.message("The other ranks keep running." if not self._left else "They are already running.")
        self.leave()

    def do_kill(self, arg: str) -> Optional[bool]:
        """kill: end this rank by an exception (bdb.BdbQuit), as pdb's own quit does."""
        self.message("This rank ends.")
        if self._channel is not None:
            self._channel.goodbye("the rank ends")
        self.set_quit()
        return True

    # --- steps, while others are held ---

    def do_next(self, arg: str) -> Optional[bool]:
        """n(ext): run to the next line of this function."""
        return self._step(lambda: super(RankPdb, self).do_next(arg))

    def do_step(self, arg: str) -> Optional[bool]:
        """s(tep): run to the next line, also of a function that is called."""
        return self._step(lambda: super(RankPdb, self).do_step(arg))

    def do_until(self, arg: str) -> Optional[bool]:
        """unt(il): run to a line below."""
        return self._step(lambda: super(RankPdb, self).do_until(arg), through=True)

    def do_return(self, arg: str) -> Optional[bool]:
        """r(eturn): run to the end of this function."""
        return self._step(lambda: super(RankPdb, self).do_return(arg), through=True)

    do_n, do_s, do_unt, do_r = do_next, do_step, do_until, do_return

    def _step(self, go: Callable[[], Any], through: bool = False) -> Optional[bool]:
        """Over a line with a collective only when it is asked for twice. `through`: to lines below."""
        frame, held = self.curframe, "" if self._left else self._held()
        if frame is not None and held:
            name = called_at(frame.f_code, frame.f_lineno, sys.maxsize if through else None)
            if name is not None and self._warned != (frame.f_code, frame.f_lineno):
                self._warned = (frame.f_code, frame.f_lineno)
                self.message(
                    f"{name} may wait for ever: {held} held here. Type `release` first; to step nevertheless, "
                    "repeat the command."
                )
                return None
        done: Optional[bool] = go()
        if done and held:
            self._stepping = threading.Timer(_LONG, self._still_stepping)
            self._stepping.daemon = True
            self._stepping.start()
        return done

    def _still_stepping(self) -> None:
        """In a thread of its own."""
        held = "" if self._left else self._held()
        if held:
            keys = "" if self._channel is None else "Ctrl-C and `o`, or "
            self.message(f"This step is still running, and {held} held here. To release them: {keys}{RELEASE_HINT}")

    def do_interact(self, arg: str) -> None:
        """interact: a Python prompt with the names of this frame; Ctrl-D leaves it."""
        assert self.curframe is not None
        if self._channel is None:
            super().do_interact(arg)
            return
        names = {**self.curframe.f_globals, **self.curframe.f_locals}
        console = code.InteractiveConsole(names)
        console.raw_input = self._raw_input  # type: ignore[method-assign]
        console.write = cast(Any, self._channel.write)  # type: ignore[method-assign]
        with contextlib.redirect_stdout(cast(Any, self._channel)):
            console.interact("Python; Ctrl-D goes back to pdb", "")

    def _raw_input(self, prompt: str = "") -> str:
        assert self._channel is not None
        self._channel.write(prompt)
        line = self._channel.readline()
        if not line or line == "\x04\n":
            raise EOFError
        return line.rstrip("\n")

    def onecmd(self, line: str) -> bool:
        self._busy = True
        try:
            return bool(super().onecmd(line))
        except KeyboardInterrupt:
            self.message("interrupted")
            return False
        finally:
            self._busy = False

    def interaction(self, frame: Optional[FrameType], traceback: Any, *more: Any) -> None:
        if self._stepping is not None:
            self._stepping.cancel()
        if self._channel is not None and self._channel.over:  # the terminal is lost
            self.do_quit("")
            return
        super().interaction(frame, traceback, *more)

    # --- what the terminal asks for meanwhile ---

    def _interrupt(self) -> None:
        """Ctrl-C there: end what was typed, or stop at the next line of Python."""
        if self._busy:
            interrupt = ctypes.py_object(_Interrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), interrupt)
        else:
            self.set_step()

    def _candidates(self, text: str, line: str, begin: int, end: int) -> List[str]:
        """What `cmd.Cmd.complete` would offer; it asks readline, which is at the other end."""
        stripped = line.lstrip()
        cut = len(line) - len(stripped)
        try:
            if begin - cut > 0:
                command, _, _ = self.parseline(line)
                finish = getattr(self, f"complete_{command}", self.completedefault) if command else self.completedefault
            else:
                finish = self.completenames
            found = list(finish(text, stripped, begin - cut, end - cut))
            if finish == self.completenames:
                found += self.completedefault(text, stripped, begin - cut, end - cut)
        except Exception:  # noqa: BLE001  a completion that fails offers nothing
            return []
        return [str(word) for word in dict.fromkeys(found)][:200]
