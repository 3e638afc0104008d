"""A rank with a driver of its own: waits at the pipe that its variables name, and writes a GPU core when it is asked.

python -m tests.inferiors.gpu_core_rank CORE [what]: CORE is the file that is written; `what`: "half" stops in the
middle, "deaf" makes the pipe and never reads it, "ends" ends behind the dump.
"""

import os
import signal
import sys
import threading
from pathlib import Path

HOST, PID = "node7", os.getpid()


def named(variable):
    return os.environ[variable].replace("%h", HOST).replace("%p", str(PID)).replace("%t", "1732190000")


def main():
    data = Path(sys.argv[1]).read_bytes()
    what = sys.argv[2] if len(sys.argv) > 2 else ""
    pipe = named("CUDA_COREDUMP_PIPE")
    os.mkfifo(pipe, 0o600)
    print("ready", flush=True)
    if what == "deaf":
        signal.pause()
    with open(pipe, "rb") as asked:
        asked.read(4096)
    file = os.open(named("CUDA_COREDUMP_FILE"), os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(file, data[: len(data) // 2])
    if what == "half":
        print("half", flush=True)
        signal.pause()
    os.write(file, data[len(data) // 2 :])
    os.close(file)
    if what != "ends":
        threading.Event().wait()


main()
