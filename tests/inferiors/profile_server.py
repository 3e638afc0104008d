"""A server that speaks the profiler's routes of vLLM, SGLang and TensorRT-LLM, with a process for each rank.

Run as a file called `vllm`, `sglang` or `trtllm-serve`, as `NAME serve --port N [--ranks N] [--case CASE] ...`: its
process looks like that engine's. It notes each request, a JSON line each, in the file that PROFILE_LOG names, and
prints "ready" when it listens. Cases: what goes wrong.
"""

import argparse
import gzip
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import setproctitle

ENGINE = {"vllm": "vllm", "sglang": "sglang", "trtllm-serve": "tensorrt-llm"}[Path(sys.argv[0]).name]
TITLES = {"vllm": "VLLM::Worker_TP{}", "sglang": "sglang::scheduler_TP{}", "tensorrt-llm": "trtllm{}"}
ENDS = []  # open for as long as we live: the workers' pipes
ROUTES = {
    "vllm": ("/version", "/tokenize", "/v1/completions"),
    "sglang": ("/flush_cache", "/generate", "/v1/completions", "/version", "/tokenize"),
    "tensorrt-llm": ("/kv_cache_events", "/perf_metrics", "/v1/completions"),
}


def events_of(rank, ranks, steps=12):
    """Kernels of one rank: rank 1 computes for longer, so that all wait for it in each all-reduce."""
    found, at = [], 1000.0
    for step in range(steps):
        slow = 900.0 if rank == 1 else 200.0
        found.append(kernel("gemm_kernel", at, slow, step * 2))
        args = {
            "Collective name": "allreduce",
            "In msg nelems": 4096,
            "dtype": "Float",
            "Group size": ranks,
            "Process Group Name": "0",
            "Process Group Ranks": str(list(range(ranks))),
        }
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        found.append(kernel(name, at + slow, 950.0 - slow, step * 2 + 1, **args))
        at += 1000.0
    return found


def kernel(name, ts, duration, correlation, **more):
    args = {"device": 0, "stream": 7, "correlation": correlation, **more}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": duration, "args": args}


def trace(rank, ranks):
    return {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
        "baseTimeNanoseconds": 1700000000000000000,
        "traceEvents": events_of(rank, ranks),
    }


class Engine:
    def __init__(self, options):
        self.options, self.lock = options, threading.Lock()
        self.running, self.body, self.steps, self.taken = False, {}, 0, 0

    def start(self, body):
        if self.running:
            return 500, "Profiling is already in progress. Call /stop_profile first."
        self.running, self.body, self.steps = True, body or {}, 0
        return 200, "Start profiling.\n"

    def step(self):
        """One step of the model; the profile may be over by it."""
        with self.lock:
            self.steps += 1
            limit = self.body.get("num_steps") if ENGINE != "vllm" else None
            if self.running and limit and self.steps >= limit:
                self.write()

    def stop(self):
        with self.lock:
            if self.options.case == "full":
                self.running = False
                return 500, "OSError: [Errno 28] No space left on device"
            if not self.running:
                return (
                    (500, "Profiling is not in progress. Call /start_profile first.")
                    if ENGINE == "sglang"
                    else (200, "")
                )
            self.write()
        return 200, "Stop profiling. This will take some time.\n"

    def write(self):
        self.running = False
        self.taken += 1
        folder = Path(self.body.get("output_dir") or self.options.folder)
        folder.mkdir(parents=True, exist_ok=True)
        stages = ("EXTEND", "DECODE") if self.body.get("profile_by_stage") else ("",)
        for rank in range(self.options.ranks - (self.options.case == "missing")):
            for stage in stages:
                path = folder / self.name(rank, stage)
                data = json.dumps(trace(rank, self.options.ranks)).encode()
                if path.suffix == ".gz":
                    data = gzip.compress(data)
                path.write_bytes(data[: len(data) // 2] if self.options.case == "cut" and rank == 1 else data)
        if ENGINE == "vllm":
            front = folder / f"host_{os.getpid()}.async_llm.{time.time_ns()}.pt.trace.json.gz"
            front.write_bytes(gzip.compress(json.dumps({"traceEvents": []}).encode()))

    def name(self, rank, stage):
        if ENGINE == "vllm":
            return f"dp0_pp0_tp{rank}_dcp0_ep0_rank{rank}.{time.time_ns()}.pt.trace.json.gz"
        if ENGINE == "tensorrt-llm":
            return f"trtllm-trace-{self.taken}-rank-{rank}.json"
        prefix = f"{self.body['profile_prefix']}-" if self.body.get("profile_prefix") else ""
        return f"{prefix}1700000000.{self.taken}-TP-{rank}{'-' + stage if stage else ''}.trace.json.gz"


class Handler(BaseHTTPRequestHandler):
    engine = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.note(None)
        paths = {path: {} for path in ROUTES[ENGINE]}
        if self.engine.options.case != "off":
            paths.update({"/start_profile": {}, "/stop_profile": {}})
        if self.path == "/openapi.json" and self.engine.options.case != "no-docs":
            self.answer(200, json.dumps({"paths": paths}))
        else:
            self.answer(404, '{"detail":"Not Found"}')

    def do_POST(self):
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(data) if data else None
        self.note(body)
        case = self.engine.options.case
        wanted = f"Bearer {self.engine.options.api_key}"
        if self.path == "/reset":  # of the test alone
            self.engine.running = False
            Path(os.environ["PROFILE_LOG"]).write_text("")
            self.answer(200, "")
        elif self.engine.options.api_key and self.headers.get("Authorization") != wanted:
            self.answer(401, '{"error":"Unauthorized"}')
        elif self.path in ("/start_profile", "/stop_profile") and case == "off":
            self.answer(404, '{"detail":"Not Found"}')
        elif self.path == "/start_profile":
            self.answer(*self.engine.start(body))
        elif self.path == "/stop_profile":
            time.sleep(1.0 if case == "slow" else 0.0)
            self.answer(*self.engine.stop())
        elif case == "dies":
            os._exit(1)
        elif case == "bad-requests":
            self.answer(400, '{"error":{"message":"model not found"}}')
        elif case == "never-answers":
            self.engine.options.hold.wait()
        else:
            self.engine.step()
            self.answer(200, "{}")

    def note(self, body):
        about = {"method": self.command, "path": self.path, "body": body, "token": self.headers.get("Authorization")}
        with open(os.environ["PROFILE_LOG"], "a") as file:
            file.write(json.dumps(about) + "\n")

    def answer(self, status, text):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def worker(title):
    """A process of that title, which it has when this returns, and which ends when we do."""
    alive, end = os.pipe()
    titled, told = os.pipe()
    if os.fork() == 0:
        os.close(end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        setproctitle.setproctitle(title)
        os.write(told, b"x")
        os.read(alive, 1)
        os._exit(0)
    os.close(alive)
    os.read(titled, 1)
    os.close(titled)
    os.close(told)
    ENDS.append(end)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--case", default="")
    parser.add_argument("--api-key", default="")
    parser.add_argument("--profiler-config", default="{}")
    parser.add_argument("--old")
    options = parser.parse_args()
    configured = json.loads(options.profiler_config).get("torch_profiler_dir")
    options.folder = configured or os.environ.get("VLLM_TORCH_PROFILER_DIR")
    options.hold = threading.Event()
    for rank in range(options.ranks):
        worker(TITLES[ENGINE].format(rank))
    Handler.engine = Engine(options)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    print("ready", server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
