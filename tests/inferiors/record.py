"""Snapshots of every hang of the demo engine, as small files: `python3 -m tests.inferiors.record [NAME...]`.

Each is what `gdbext diagnose --save` wrote of a live job; paths and the host's name are replaced.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.inferiors.demo import DemoJob
from tests.inferiors.demo_build import build
from tests.inferiors.scenarios import SCENARIOS

FOLDER = Path(__file__).parents[2] / "gdbext" / "demo"
_SOURCES = Path(__file__).parent / "engine"


def record(name: str) -> str:
    """The text of the snapshot. Raises CalledProcessError, DemoFailed."""
    with DemoJob(name, ranks=3, wait="poll", pool_threads=1) as job, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "look.json"
        pids = [str(pid) for _, pid in sorted(job.pids.items())]
        words = [sys.executable, "-m", "gdbext", "diagnose", "-q", "--save", str(file), *pids]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if not file.exists():
            raise subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr)
        return _without_names(file.read_text(), pids)


def _without_names(text: str, pids: list[str]) -> str:
    for number, pid in enumerate(pids):
        text = re.sub(rf"\b{pid}\b", str(4711 + number), text)
    for path, other in ((build(), "/opt/demo"), (_SOURCES, "/src/engine"), (_SOURCES.parents[2], "/src")):
        text = text.replace(str(path), other)
    text = text.replace(socket.gethostname(), "node17")
    return json.dumps(json.loads(text), separators=(",", ":")) + "\n"


def main() -> int:
    wanted = sys.argv[1:] or [one.name for one in SCENARIOS]
    FOLDER.mkdir(exist_ok=True)
    for name in wanted:
        print(name, file=sys.stderr, flush=True)
        (FOLDER / f"{name}.json").write_text(record(name))
    return 0


if __name__ == "__main__":
    os.environ.pop("GDBEXT_GDB", None)
    sys.exit(main())
