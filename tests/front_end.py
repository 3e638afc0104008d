"""The `gdbext` command in this process: Python's start and our imports take longer than most of its answers.

A test of what a process is needed for starts `python -m gdbext`: signals and sudden death, limits, users, pipes.
"""

import contextlib
import io
import subprocess

from gdbext.cli.main import main


def gdbext(*words):
    """What `gdbext WORDS` answers: as `subprocess.run` has it, with `returncode`, `stdout` and `stderr`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*map(str, words)])
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())
