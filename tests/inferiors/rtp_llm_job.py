"""Starts the stand-in for a server of RTP-LLM (rtp_llm_server/), and asks it over HTTP."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any, Dict, List, Optional

from tests.inferiors.build_library import shared_library
from tests.inferiors.pdb_job import DEADLINE, ends

HERE = Path(__file__).resolve().parent / "rtp_llm_server"


class Request(threading.Thread):
    """One that a client has sent, and waits for."""

    def __init__(self, port: int, prompt: str) -> None:
        super().__init__(daemon=True)
        self._port, self._prompt = port, prompt
        self._answer: Optional[Dict[str, Any]] = None
        self.start()

    def run(self) -> None:
        body = json.dumps({"prompt": self._prompt}).encode()
        proxyless = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with proxyless.open(f"http://127.0.0.1:{self._port}/", body, timeout=DEADLINE) as answer:
            self._answer = json.load(answer)

    @property
    def waits(self) -> bool:
        return self.is_alive()

    def answer(self) -> Dict[str, Any]:
        self.join(DEADLINE)
        assert self._answer is not None, "no answer"
        return self._answer


class RtpLlmJob:
    """The whole tree of processes, within the `with` block."""

    def __enter__(self) -> RtpLlmJob:
        library = shared_library(HERE / "engine.cpp", "rtp_llm/libs/librtp_engine.so")
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "start_server.py"), str(library)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            assert select.select([self._process.stdout], [], [], DEADLINE)[0], "the server does not start"
            self.port = int(self._process.stdout.readline())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        self._end()

    def _end(self) -> None:
        """The others end with the first one: each has asked for a signal at the end of its parent."""
        everybody = [self._process.pid, *self.pids().values()]
        self._process.kill()
        stayed = [pid for pid in everybody if not ends(pid)]
        self._process.wait(DEADLINE)
        assert not stayed
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def ask(self, prompt: str) -> Request:
        return Request(self.port, prompt)

    def pids(self) -> Dict[str, int]:
        """By title."""
        found, left = {}, self._children(self._process.pid)
        while left:
            pid = left.pop()
            left += self._children(pid)
            found[Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode()] = pid
        return found

    @staticmethod
    def _children(pid: int) -> List[int]:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
