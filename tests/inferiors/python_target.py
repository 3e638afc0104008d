"""Run one of the python_*.py programs beside this file and wait until it is ready."""

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.polling import wait_until

HERE = Path(__file__).parent
READS_STDIN = "0 0x0 "
"""How /proc/PID/syscall begins on x86-64: read() of file 0."""
ELSEWHERE = ("python_fork.py", "python_gil.py", "python_tasks.py")
"""The programs whose main thread does not read its stdin."""
VERSION = "import sys; print(*sys.version_info[:2], hasattr(sys, '_is_gil_enabled') and not sys._is_gil_enabled())"


class PythonTarget:
    """A running program; `words` is what it said after "ready"."""

    def __init__(self, script, *arguments, python=sys.executable):
        command = [python, "-W", "ignore", str(HERE / script), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        said = self.process.stdout.readline().split()
        if said[:1] != ["ready"]:
            self.close()
            raise RuntimeError(f"{script} under {python} did not get ready")
        self.words = said[1:]
        if script not in ELSEWHERE:
            self.until_it_reads()

    def until_it_reads(self, pid=None):
        """Wait until the main thread of the program, or of its child `pid`, sleeps in read(0, ...): "ready" comes
        before that."""
        pid = pid or self.pid
        call = Path(f"/proc/{pid}/syscall")
        wait_until(lambda: call.read_text().startswith(READS_STDIN), f"process {pid} reads its stdin")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def interpreters():
    """One program for each CPython release from 3.8 on that is installed: ours, the system's, pyenv's, and those that
    the variable GDBEXT_PYTHONS names."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = {sys.version_info[:2]: sys.executable}
    more = os.environ.get("GDBEXT_PYTHONS", "").split(os.pathsep)
    for path in [
        *more,
        "/usr/bin/python3",
        shutil.which("python3"),
        *sorted(glob.glob(f"{root}/versions/3.*/bin/python3")),
    ]:
        if not path or not os.path.exists(path):
            continue
        answer = subprocess.run([path, "-c", VERSION], capture_output=True, text=True, check=False).stdout.split()
        if answer and answer[2] == "False" and (int(answer[0]), int(answer[1])) >= (3, 8):
            found.setdefault((int(answer[0]), int(answer[1])), path)
    return found
