"""A stand-in for a server of RTP-LLM with two ranks: `python start_server.py LIBRARY`; says its HTTP port on stdout.

Its tree, titles and variables are the engine's: this process starts a backend server, that one its ranks with
WORLD_RANK set before each spawn, and a front end takes requests over HTTP. Titles are set after the start, which wipes
/proc/PID/environ. It ends when its standard input is closed, and all of its processes with it.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from setproctitle import setproctitle

WORLD_SIZE = 2


def begin(title):
    """In every process: its title, and the end when its parent ends."""
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
    setproctitle(title)


def spawn(role, *handles, **environment):
    return subprocess.Popen(
        [sys.executable, __file__, role, *map(str, handles)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=[number for number in handles if isinstance(number, int)],
        env={**os.environ, **environment},
    )


def start(library):
    requests, server = socket.socketpair(), socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    backend = spawn("backend", requests[0].fileno(), library)
    assert backend.stdout.readline() == "ready\n"
    front = spawn("frontend", requests[1].fileno(), server.fileno())
    assert front.stdout.readline() == "ready\n"
    print(server.getsockname()[1], flush=True)
    sys.stdin.read()
    for process in (front, backend):
        process.kill()
        process.wait()


def backend(requests, library):
    begin("rtp_llm_backend_server")
    between = socket.socketpair()
    common = {"WORLD_SIZE": str(WORLD_SIZE), "LOCAL_WORLD_SIZE": str(WORLD_SIZE), "TP_SIZE": str(WORLD_SIZE)}
    ranks = [
        spawn("rank", int(requests), between[rank].fileno(), library, WORLD_RANK=str(rank), **common)
        for rank in range(WORLD_SIZE)
    ]
    for rank in ranks:
        assert rank.stdout.readline() == "ready\n"
    print("ready", flush=True)
    for rank in ranks:
        rank.wait()


def rank(requests, between, library):
    number = int(os.environ["WORLD_RANK"])
    begin(f"rtp_llm_rank-{number}")
    engine = ctypes.CDLL(library)
    engine.rtp_start.restype = ctypes.c_void_p
    engine.rtp_generate.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    engine.rtp_generate.restype = ctypes.c_int64
    started = engine.rtp_start(number, int(between))
    print("ready", flush=True)
    channel = socket.socket(fileno=int(requests)).makefile("rw")
    if number:
        ctypes.CDLL(None).pause()
    for line in channel:  # requests come to rank 0
        prompt = json.loads(line)["prompt"]
        print(json.dumps({"response": engine.rtp_generate(started, len(prompt))}), file=channel, flush=True)


class Front(BaseHTTPRequestHandler):
    channel = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        print(json.dumps(json.loads(body)), file=self.channel, flush=True)
        answer = self.channel.readline().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *words):
        pass


def frontend(requests, listening):
    begin("rtp_llm_frontend_server_rank_0_server_0")
    Front.channel = socket.socket(fileno=int(requests)).makefile("rw")
    server = HTTPServer(("127.0.0.1", 0), Front, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=int(listening))
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    roles = {"backend": backend, "rank": rank, "frontend": frontend}
    if sys.argv[1] in roles:
        roles[sys.argv[1]](*sys.argv[2:])
    else:
        start(sys.argv[1])
