"""Engines of several processes that hang, and healthy ones: `twenty_fourth_engines.py NAME FOLDER`."""

import asyncio
import collections
import fcntl
import hashlib
import http.client
import http.server
import itertools
import json
import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


def cluster(cpus):
    import ray

    ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False)
    return ray


class TaskRunner:
    """Of a trainer. It places the units that keep the samples, and trains after that."""

    def __init__(self, arguments):
        sys.argv = list(arguments)

    def place_storage_units(self, count):
        import ray
        from ray.util.placement_group import placement_group

        group = placement_group([{"CPU": 1}] * count, strategy="SPREAD")
        ray.get(group.ready())
        return group

    def run(self, counts):
        for count in counts:
            if count == counts[-1]:
                at("runner")
            self.place_storage_units(count)
        return "trained"


def storage_units_without_room():
    """As verl-project/verl#7656: the units that keep samples have a processor each, by default more than the node has.
    That their places are ready is waited for, and nothing is said about it."""
    ray = cluster(2)
    runner = ray.remote(num_cpus=1)(TaskRunner).remote(sys.argv)
    answer = runner.run.remote([1, 8])
    wait_for_role("runner")
    at("main")
    ray.get(answer)


class KVPoll:
    WAITING, SUCCESS, FAILED = "waiting", "success", "failed"


class PrefillManager:
    """Its own loop, and a thread that transfers what was computed to who asked for it."""

    def __init__(self):
        import zmq

        self.context = zmq.Context()
        self.requests = self.context.socket(zmq.PULL)
        self.requests.bind(f"ipc://{in_folder('prefill.socket')}")
        self.decode = self.context.socket(zmq.PUSH)
        self.decode.connect(f"ipc://{in_folder('decode.socket')}")
        self.chunks, self.status = queue.Queue(), {}
        thread(self.transfer_worker)

    def transfer(self, room, values):
        if room == 3:
            raise ConnectionError("the remote agent did not take it")
        self.decode.send_json({"room": room, "values": values})

    def transfer_worker(self):
        while True:
            room, values = self.chunks.get()
            try:
                self.transfer(room, values)
                self.status[room] = KVPoll.SUCCESS
            except ConnectionError as error:
                print(f"room {room}: {error}", flush=True)
                self.status[room] = KVPoll.FAILED

    def event_loop(self):
        while True:
            if self.requests.poll(10):
                room = self.requests.recv_json()["room"]
                self.status[room] = KVPoll.WAITING
                work_for(0.02)
                self.chunks.put((room, [room] * 16))
            for room in [room for room, status in self.status.items() if status != KVPoll.WAITING]:
                if self.status.pop(room) == KVPoll.FAILED:
                    at("prefill")


class DecodeManager:
    """It generates once it has what was computed for the prompt."""

    LIMIT = 300

    def __init__(self):
        import zmq

        self.context = zmq.Context()
        self.transfers = self.context.socket(zmq.PULL)
        self.transfers.bind(f"ipc://{in_folder('decode.socket')}")
        self.requests = self.context.socket(zmq.REP)
        self.requests.bind(f"ipc://{in_folder('requests.socket')}")
        self.status = {}

    def poll(self, room):
        while self.transfers.poll(10):
            self.status[self.transfers.recv_json()["room"]] = KVPoll.SUCCESS
        return self.status.get(room, KVPoll.WAITING)

    def generate(self, room):
        begun = time.monotonic()
        while self.poll(room) == KVPoll.WAITING:
            if time.monotonic() - begun > self.LIMIT:
                return "an error"
        work_for(0.02)
        return "a text"

    def event_loop(self):
        while True:
            room = self.requests.recv_json()["room"]
            if room == 3:
                at("decode")
            self.requests.send_json({"text": self.generate(room)})


def run_prefill():
    PrefillManager().event_loop()


def run_decode():
    DecodeManager().event_loop()


def prefill_fails_alone():
    """As sgl-project/sglang#36108: a transfer fails, which the prefill worker keeps for itself. The decode worker waits
    for what does not come, and the request with it."""
    child_of(run_prefill)
    child_of(run_decode)
    import zmq

    context = zmq.Context()
    prefill, decode = context.socket(zmq.PUSH), context.socket(zmq.REQ)
    prefill.connect(f"ipc://{in_folder('prefill.socket')}")
    decode.connect(f"ipc://{in_folder('requests.socket')}")
    for room in range(1, 4):
        prefill.send_json({"room": room})
        decode.send_json({"room": room})
        if room == 3:
            wait_for_role("prefill")
            at("main")
        print(decode.recv_json()["text"], flush=True)


class SignalActor:
    """Texts are generated, or weights are updated, and not both at once."""

    def __init__(self, arguments):
        sys.argv = list(arguments)
        self.state, self.changed = "idle", asyncio.Condition()
        at("signal")

    async def become(self, state):
        async with self.changed:
            await self.changed.wait_for(lambda: self.state == "idle")
            self.state = state

    async def set_generating(self):
        await self.become("generating")

    async def set_update_weights(self):
        await self.become("updating")

    async def set_idle(self):
        async with self.changed:
            self.state = "idle"
            self.changed.notify_all()


class EngineActor:
    """Of the engine that generates; it cannot be paused the third time."""

    def __init__(self):
        self.pauses = 0

    def pause_generation(self):
        self.pauses += 1
        if self.pauses == 3:
            raise RuntimeError("the engine has no memory left")

    def resume_generation(self):
        return self.pauses


class GeneratorActor:
    """Samples for the trainer, for ever."""

    def __init__(self, arguments, signal_actor):
        sys.argv = list(arguments)
        self.signal = signal_actor

    def fit(self):
        import ray

        while True:
            at("generator")
            ray.get(self.signal.set_generating.remote())
            work_for(0.02)
            ray.get(self.signal.set_idle.remote())
            time.sleep(0.02)


class TrainerActor:
    """Steps of the training; new weights are told to the engine after each."""

    def __init__(self, arguments, signal_actor, engine):
        sys.argv = list(arguments)
        self.signal, self.engine = signal_actor, engine

    def broadcast_to_engine(self, step):
        import ray

        if step == 4:
            at("trainer")
        ray.get(self.signal.set_update_weights.remote())
        ray.get(self.engine.pause_generation.remote())
        try:
            work_for(0.02)
        finally:
            ray.get(self.engine.resume_generation.remote())
            ray.get(self.signal.set_idle.remote())

    def fit(self):
        for step in itertools.count(1):
            work_for(0.05)
            try:
                self.broadcast_to_engine(step)
            except RuntimeError as error:
                print(f"step {step}: the weights were not updated: {error}", flush=True)


def signal_of_updates():
    """As OpenRLHF/OpenRLHF#1262: the trainer tells a signal that it updates weights, and the engine to pause, which
    fails before it would see to it that all is told back. Nobody can generate, and no weights be updated any more."""
    ray = cluster(2)
    actor = ray.remote(num_cpus=0)
    signal_actor, engine = actor(SignalActor).remote(sys.argv), actor(EngineActor).remote()
    generator = actor(GeneratorActor).remote(sys.argv, signal_actor)
    trainer = actor(TrainerActor).remote(sys.argv, signal_actor, engine)
    jobs = [generator.fit.remote(), trainer.fit.remote()]
    wait_for_role("trainer")
    at("main")
    ray.get(jobs)


def run_runner(pipe):
    """What computes, in a process of its own, as it may crash."""
    while True:
        task = pipe.recv()
        if task == "a prompt that is too long":
            os.kill(os.getpid(), signal.SIGABRT)
        work_for(0.02)
        pipe.send(f"a text for {task}")


class Worker:
    """Of one instance. It plans what to do next, and its runner does that."""

    def __init__(self, role, master):
        self.role, self.master, self.tasks = role, master, collections.deque()
        self.pipe, other = FORK.Pipe()
        self.runner = FORK.Process(target=run_runner, args=(other,), daemon=True)
        self.runner.start()
        other.close()

    def kill_runner(self):
        self.runner.kill()

    def generate(self):
        number, task = self.tasks.popleft()
        self.pipe.send(task)
        try:
            chunk = self.pipe.recv()
        except EOFError:
            self.runner.join()
            chunk = f"error: the runner ended with {self.runner.exitcode}"
        self.master.send((number, chunk))

    def plan(self):
        if not self.runner.is_alive():
            if self.tasks and not os.path.exists(in_folder(self.role)):
                at(self.role)
            return self.kill_runner
        return self.generate if self.tasks else None

    def loop(self):
        if self.role == "b":
            at(self.role)
        while True:
            if self.master.poll(0.1):
                self.tasks.append(self.master.recv())
            step = self.plan()
            if step:
                step()


def run_worker(role, master):
    Worker(role, master).loop()


class Master:
    """Gives each task to the instance that has the fewest, and its answers to who waits for them."""

    def __init__(self):
        self.pipes, self.active, self.queues, self.numbers = {}, {}, {}, itertools.count()
        for role in "ab":
            self.pipes[role], other = FORK.Pipe()
            FORK.Process(target=run_worker, args=(role, other)).start()
            self.active[role] = set()

    def listen(self):
        loop = asyncio.get_running_loop()
        for role, pipe in self.pipes.items():
            loop.add_reader(pipe.fileno(), self.take, role, pipe)

    def take(self, role, pipe):
        number, chunk = pipe.recv()
        self.active[role].discard(number)
        self.queues[number].put_nowait(chunk)

    def command(self, task):
        number, role = next(self.numbers), min(self.active, key=lambda role: len(self.active[role]))
        self.active[role].add(number)
        self.queues[number] = asyncio.Queue()
        self.pipes[role].send((number, task))
        return number

    async def token_chunk_stream(self, number):
        return await self.queues[number].get()


async def serve_prompts():
    master = Master()
    master.listen()
    for prompt in ("hello", "a prompt that is too long", "why is it", "tell me a story"):
        number = master.command(prompt)
        if prompt == "why is it":
            at("main")
        print(await master.token_chunk_stream(number), flush=True)


def routes_to_dead_runners():
    """As exo-explore/exo#1804: the runner of an instance has crashed, and its task was answered by an error. The
    instance has no tasks now, so that the next one goes there; its worker has nothing in mind but to end the runner."""
    asyncio.run(serve_prompts())


class StreamThread(threading.Thread):
    """Of one run: it handles what the user's process tells about it."""

    def __init__(self):
        super().__init__(name="StreamThr", daemon=True)
        self.records, self.results = queue.Queue(), queue.Queue()

    def handle(self, record):
        try:
            json.dumps(record, allow_nan=False)
        except ValueError as error:
            print(f"wandb-internal: {error}", flush=True)
            sys.exit(1)
        if record.get("finish"):
            self.results.put({"exit": 0})

    def run(self):
        while True:
            self.handle(self.records.get())


class Service:
    """A process for all runs of a user."""

    def __init__(self, listener):
        self.listener, self.streams = listener, {}

    def read_connection(self, connection):
        lines = connection.makefile("r")
        for line in lines:
            name, record = json.loads(line)
            if name not in self.streams:
                self.streams[name] = StreamThread()
                self.streams[name].start()
            self.streams[name].records.put(record)
            if record.get("finish"):
                at("service")
                connection.sendall((json.dumps(self.streams[name].results.get()) + "\n").encode())

    def serve(self):
        while True:
            thread(self.read_connection, self.listener.accept()[0])


def run_service(listener):
    Service(listener).serve()


class Run:
    """What the user's process has of it."""

    def __init__(self, connection, name):
        self.connection, self.name = connection, name

    def tell(self, **record):
        self.connection.sendall((json.dumps([self.name, record]) + "\n").encode())

    def finish(self):
        self.tell(finish=True)
        at("main")
        return self.connection.makefile("r").readline()


def service_thread_exits():
    """As wandb/wandb#3280: the thread of a run meets an error and calls sys.exit, which ends it and not its process.
    The user's process waits for the answer that this thread would give."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(in_folder("service.socket"))
    listener.listen()
    child_of(run_service, listener)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(in_folder("service.socket"))
    training = Run(connection, "a-run")
    for step in range(20):
        training.tell(step=step, loss=1.0 / (step + 1) if step < 19 else float("inf"))
    training.finish()


class Replica:
    """Requests are handled one at a time. Their bodies come in messages of their own."""

    def __init__(self):
        self.slots, self.bodies, self.tasks = 1, collections.defaultdict(asyncio.Queue), {}

    async def body(self, number):
        if number == 2:
            at("replica")
        return await self.bodies[number].get()

    async def handle(self, number, writer):
        if self.slots == 0:
            writer.write(json.dumps([number, "rejected"]).encode() + b"\n")
            return
        self.slots -= 1
        self.tasks[number] = asyncio.current_task()
        try:
            text = await self.body(number)
            writer.write(json.dumps([number, text.upper()]).encode() + b"\n")
        finally:
            self.slots += 1

    async def serve(self, reader, writer):
        begun = set()
        while line := await reader.readline():
            kind, number, text = json.loads(line)
            if kind == "request":
                task = asyncio.create_task(self.handle(number, writer))
                begun.add(task)
                task.add_done_callback(begun.discard)
            elif kind == "body":
                self.bodies[number].put_nowait(text)
            elif number in self.tasks:
                self.tasks[number].cancel()


async def serve_replica(path):
    server = await asyncio.start_unix_server(Replica().serve, path)
    await server.serve_forever()


def run_replica(path):
    asyncio.run(serve_replica(path))


class Proxy:
    """Gives requests on to the replica, and tries again when that is at its capacity."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def tell(self, *messages):
        self.writer.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    async def answer(self, number, text):
        answer, attempt = "rejected", 0
        while answer == "rejected":
            if attempt == 4:
                at("main")
            await asyncio.sleep(min(1.0, 0.05 * attempt))
            self.tell(["request", number, ""], ["body", number, text])
            answer, attempt = json.loads(await self.reader.readline())[1], attempt + 1
        return answer

    def disconnected(self, number):
        """The client was gone before it had sent its body."""
        self.tell(["request", number, ""], ["cancel", number, ""])


async def serve_proxy(path):
    proxy = Proxy(*await asyncio.open_unix_connection(path))
    print(await proxy.answer(1, "hello"), flush=True)
    proxy.disconnected(2)
    print(await proxy.answer(3, "how are you"), flush=True)


def body_of_a_cancelled_request():
    """As ray-project/ray#44644: a client disconnects just when its request begins. The request is not known yet to be
    cancelled, and waits for its body after that, with the only slot of its replica."""
    path = in_folder("replica.socket")
    child_of(run_replica, path)
    while not os.path.exists(path):
        time.sleep(0.02)
    asyncio.run(serve_proxy(path))


def download_weights():
    """Files from a hub. Its bars are written as often as something has come."""
    import tqdm

    print("Download file: model.safetensors", flush=True)
    at("download")
    for number in range(8):
        with tqdm.tqdm(total=1 << 30, unit="B", unit_scale=True, mininterval=0, ascii=True, ncols=120) as bar:
            for _ in range(2048):
                bar.update(1 << 19)
        print(f"Downloaded file {number}", flush=True)


def log_lines(stream):
    for line in stream:
        print(line.decode().rstrip(), flush=True)


def progress_bar_in_a_pipe():
    """As huggingface/text-generation-inference#1186: the launcher reads what the download says at once, and its errors
    when it has ended. A progress bar is written there, until the pipe is full."""
    words = [sys.executable, "-m", "tests.inferiors.live.twenty_fourth_engines", "download-weights", sys.argv[2]]
    download = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    thread(log_lines, download.stdout)
    wait_for_role("download")
    at("main")
    while download.poll() is None:
        time.sleep(0.1)
    print(download.stderr.read().decode()[-200:], flush=True)


class InferenceGate:
    """One request at a time, of all processes that use the model of this machine."""

    def __init__(self):
        self.requests = threading.Semaphore(1)
        self.file = os.open(in_folder("inference.lock"), os.O_CREAT | os.O_RDWR)

    def __enter__(self):
        self.requests.acquire()
        while True:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self
            except BlockingIOError:
                time.sleep(0.05)

    def __exit__(self, *_):
        fcntl.flock(self.file, fcntl.LOCK_UN)
        self.requests.release()


def generate_tokens(count):
    state = b"a prompt"
    for _ in range(count):
        work_for(0.05)
        state = hashlib.sha256(state).digest()
    return state.hex()


def generate_long_texts():
    gate = InferenceGate()
    while True:
        with gate:
            if not os.path.exists(in_folder("other")):
                at("other")
            generate_tokens(400)
        time.sleep(0.3)


def waits_for_the_inference_lock():
    """Healthy, as ahwurm/localharness#62: another process generates a long text, with the lock of all that use the
    model. Whether it is free is looked at twenty times a second, and it will be."""
    child_of(generate_long_texts)
    wait_for_role("other")
    gate = InferenceGate()
    for number in itertools.count():
        at("main")
        with gate:
            print(number, generate_tokens(10), flush=True)


class BusyServer(http.server.BaseHTTPRequestHandler):
    """It takes one chunk of lines in a while, and is busy else."""

    def do_POST(self):
        lines = self.rfile.read(int(self.headers["Content-Length"]))
        work_for(0.05)
        status = 200 if hashlib.sha256(lines).digest()[0] < 32 else 503
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


def run_busy_server(server):
    at("server")
    server.serve_forever()


class FileStream:
    """The last lines of a run, in chunks. Each is sent until the server takes it, or it has been tried often enough."""

    TRIES, LONGEST = 8, 4.0

    def __init__(self, port):
        self.port, self.dropped = port, 0

    def post(self, chunk, attempt):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/files/a-run/file_stream", json.dumps([chunk, attempt]))
        status = connection.getresponse().status
        connection.close()
        return status

    def send(self, chunk):
        for attempt in range(self.TRIES):
            if self.post(chunk, attempt) == 200:
                return
            time.sleep(min(self.LONGEST, 0.2 * 2**attempt))
        self.dropped += 1
        print("wandb: ERROR Dropped streaming file chunk", flush=True)

    def run(self):
        for number in range(100000):
            self.send([f'{{"step": {number}}}'] * 20)


def run_internal(port):
    stream = thread(FileStream(port).run)
    at("internal")
    stream.join()


def streams_with_retries():
    """Healthy, as wandb/wandb#4366: the training is over, and its last lines are still sent. The server is busy most of
    the time, so that each chunk is tried again, with longer and longer pauses, and some are dropped after all."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), BusyServer)
    child_of(run_busy_server, server)
    internal = child_of(run_internal, server.server_address[1])
    print("wandb: Waiting for W&B process to finish... (success).", flush=True)
    at("main")
    while internal.is_alive():
        internal.join(0.5)


PROGRAMS = {
    "storage-units-without-room": storage_units_without_room,
    "prefill-fails-alone": prefill_fails_alone,
    "signal-of-updates": signal_of_updates,
    "routes-to-dead-runners": routes_to_dead_runners,
    "service-thread-exits": service_thread_exits,
    "body-of-a-cancelled-request": body_of_a_cancelled_request,
    "progress-bar-in-a-pipe": progress_bar_in_a_pipe,
    "download-weights": download_weights,
    "waits-for-the-inference-lock": waits_for_the_inference_lock,
    "streams-with-retries": streams_with_retries,
}

if __name__ == "__main__":
    run(PROGRAMS)
