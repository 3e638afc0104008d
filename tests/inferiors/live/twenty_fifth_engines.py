"""Engines of several processes that hang, and healthy ones, twenty-fifth set: `twenty_fifth_engines.py NAME FOLDER`."""

import http.client
import http.server
import itertools
import json
import multiprocessing
import os
import queue
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


class Mailbox:
    """A state and a text in memory that a worker and who began it share."""

    IDLE, INIT_DONE, TASK_READY = range(3)

    def __init__(self):
        self.state, self.error = FORK.Value("i", self.IDLE, lock=False), FORK.Array("c", 256, lock=False)


def init_chip(number):
    if number == 1:
        raise RuntimeError("the chip does not answer")
    work_for(0.05)


def run_chip_worker(number, mailbox):
    try:
        init_chip(number)
    except RuntimeError as error:
        mailbox.error.value = str(error).encode()
        os._exit(1)
    mailbox.state.value = Mailbox.INIT_DONE
    at("worker")
    while mailbox.state.value != Mailbox.TASK_READY:
        time.sleep(0.001)


class Worker:
    """It has a process for each chip, and is ready when all of them are."""

    def __init__(self, chips):
        self.mailboxes = [Mailbox() for _ in range(chips)]
        self.children = [child_of(run_chip_worker, number, mailbox) for number, mailbox in enumerate(self.mailboxes)]

    def wait_ready(self):
        for mailbox in self.mailboxes:
            while mailbox.state.value != Mailbox.INIT_DONE:
                pass


def starts_its_chips():
    """As hw-native-sys/simpler#1396: one of the processes of a worker could not begin. It has left its error in the
    memory that they share, and ended; who began it looks again and again whether it has begun."""
    worker = Worker(2)
    wait_for_role("worker")
    at("main")
    worker.wait_ready()
    print("ready", flush=True)


def write_checkpoints(requests, written):
    """A process that lives as long as the training. It copies what it gets before it says that it has it."""
    while True:
        step, state = requests.get()
        if step == 2:
            raise RuntimeError("the memory of another process could not be mapped")
        copied = bytes(state)
        requests.task_done()
        with open(in_folder(f"step{step}"), "wb") as file:
            file.write(copied)
        written.put(step)


class PolicyWorker:
    """Of a trainer in ray. It saves beside its steps."""

    def __init__(self, arguments):
        sys.argv = list(arguments)
        self.requests, self.written = FORK.JoinableQueue(), FORK.Queue()
        self.writer = child_of(write_checkpoints, self.requests, self.written)

    def save(self, step):
        self.requests.put((step, bytearray(1 << 16)))
        self.requests.join()  # until it is copied, so that the next step may change it

    def train(self, steps):
        for step in range(steps):
            work_for(0.05)
            if step == 2:
                at("trainer")
            self.save(step)
        return "trained"


def saves_in_another_process():
    """As NovaSky-AI/SkyRL#1960: a checkpoint is written by another process, which could not map the memory that it got
    and has ended by that error. The trainer waits until it has copied the state."""
    ray = cluster(2)
    worker = ray.remote(num_cpus=1)(PolicyWorker).remote(sys.argv)
    answer = worker.train.remote(4)
    wait_for_role("trainer")
    at("main")
    ray.get(answer)


def run_stage(inputs, outputs):
    while True:
        outputs.put(sum(inputs.get()[:16]))
        time.sleep(0.05)


class SubprocessPool:
    """The stages of a pipeline, in processes. Each has a queue of its own for what comes in."""

    def __init__(self, workers):
        self.inputs, self.outputs = [FORK.Queue() for _ in range(workers)], FORK.Queue()
        self.workers = [child_of(run_stage, inputs, self.outputs) for inputs in self.inputs]

    def feed(self, source):
        for item, inputs in zip(source, itertools.cycle(self.inputs)):
            inputs.put(item)

    def shutdown(self):
        for worker in self.workers:
            worker.terminate()
            worker.join()
        for inputs in self.inputs:
            inputs.put_nowait("the pool ends")
            inputs.close()
            at("main")
            inputs.join_thread()


def consumer_stops_early():
    """As facebookresearch/spdl#1564: who takes the results of a pipeline stops before the end. The workers are ended,
    and what is left for them is in a pipe that is full; it is waited for until all of it is in the pipe."""
    pool = SubprocessPool(2)
    pool.feed([number] * 2000 for number in range(200))
    for _ in range(4):
        print(pool.outputs.get(), flush=True)
    pool.shutdown()


def warn_much(role):
    at(role)
    for step in itertools.count():
        print(f"[{role}] step {step}: the gradients have another layout than the buckets", file=sys.stderr, flush=True)
        if step % 50 == 0:
            time.sleep(0.01)


def train_cli():
    """What the user interface begins: two workers, and it waits for them."""
    workers = [child_of(warn_much, f"worker{number}") for number in range(2)]
    for number in range(2):
        wait_for_role(f"worker{number}")
    at("trainer")
    for worker in workers:
        worker.join()


def trains_from_the_interface():
    """As hiyouga/LlamaFactory#10584: the errors of a training go to a pipe, which is read after its end. The workers
    say more than it can hold. The interface looks every other second whether the training has ended."""
    words = [sys.executable, "-m", "tests.inferiors.live.twenty_fifth_engines", "train-cli", sys.argv[2]]
    trainer = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    wait_for_role("trainer")
    at("main")
    while True:
        try:
            trainer.wait(2)
            break
        except subprocess.TimeoutExpired:
            continue
    print(trainer.stderr.read()[-200:], flush=True)


def play(number, frames, predictions):
    for frame in range(10):
        frames.put((number, frame))
        predictions.get()


class PredictorThread(threading.Thread):
    """It looks at the word to end between two frames."""

    def __init__(self, frames, predictions):
        super().__init__(daemon=True)
        self.frames, self.predictions, self.exit_flag = frames, predictions, False

    def run(self):
        while not self.exit_flag:
            number, frame = self.frames.get()
            self.predictions[number].put(frame % 4)


def episodes_are_over():
    """As NVlabs/GA3C#28: the agents have ended. The threads that predict for them are told to end, which they see when
    they have got one more frame."""
    frames, predictions = FORK.Queue(100), [FORK.Queue() for _ in range(2)]
    agents = [child_of(play, number, frames, predictions[number]) for number in range(2)]
    predictors = [PredictorThread(frames, predictions) for _ in range(2)]
    for predictor in predictors:
        predictor.start()
    for agent in agents:
        agent.join()
    for predictor in predictors:
        predictor.exit_flag = True
    at("main")
    for predictor in predictors:
        predictor.join()


class ReplyWorker:
    """It answers what comes to the workers of this server."""

    def __init__(self):
        import zmq

        self.context = zmq.Context(1)
        self.socket = self.context.socket(zmq.REP)
        self.socket.connect("inproc://workers")

    def work(self):
        while True:
            request = self.socket.recv_json()
            self.socket.send_json({"text": request["prompt"] + " and so on"})


def forward(clients, workers):
    """Requests to the workers, and their answers to the clients."""
    import zmq

    poller = zmq.Poller()
    poller.register(clients, zmq.POLLIN)
    poller.register(workers, zmq.POLLIN)
    while True:
        ready = dict(poller.poll())
        if clients in ready:
            workers.send_multipart(clients.recv_multipart())
        if workers in ready:
            clients.send_multipart(workers.recv_multipart())


def ask_server(path):
    import zmq

    socket = zmq.Context().socket(zmq.REQ)
    socket.connect(path)
    socket.send_json({"prompt": "once upon a time"})
    at("client")
    print(socket.recv_json(), flush=True)


def routes_to_its_workers():
    """As zeromq/libzmq#1194: requests come to a router, which gives them to the workers of the same process. A worker
    has a context of its own, so that it has no connection to the router, which waits for a worker to send to."""
    client = child_of(ask_server, f"ipc://{in_folder('clients.socket')}")
    import zmq

    context = zmq.Context(1)
    clients, workers = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    clients.bind(f"ipc://{in_folder('clients.socket')}")
    workers.bind("inproc://workers")
    thread(ReplyWorker().work)
    thread(forward, clients, workers)
    wait_for_role("client")
    at("main")
    client.join()


SOURCE = """
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>
int run_{number}(const std::string &text)
{{
    static const std::regex expression("([a-z]+)_([0-9]+)");
    std::map<std::string, std::vector<std::function<int(int)>>> known;
    for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it)
        known[(*it)[1]].push_back([](int value) {{ return value + {number}; }});
    return known.size();
}}
"""


def compile_objects(role, numbers):
    for number in numbers:
        source = in_folder(f"unit{number % 8}.cpp")
        with open(source, "w") as file:
            file.write(SOURCE.format(number=number))
        if number < 2:
            at(role)
        subprocess.run(["g++", "-O2", "-c", source, "-o", source.replace(".cpp", ".o")], check=True)


def builds_everything():
    """Healthy, as xieyaxiongfly/Atheros_CSI_tool_OpenWRT_src#72: a build with as many jobs as cores. There is a lot to
    build, and the lines that are shown look alike for half an hour."""
    jobs = [child_of(compile_objects, f"job{number}", itertools.count(number, 2)) for number in range(2)]
    for number in range(2):
        wait_for_role(f"job{number}")
    at("main")
    for job in jobs:
        job.join()


def fill_cache(folder):
    for scenario in range(400):
        path = os.path.join(folder, f"log{scenario % 20}", f"scenario{scenario}")
        os.makedirs(path)
        with open(os.path.join(path, "feature.json"), "w") as file:
            json.dump({"scenario": scenario, "trajectory": list(range(200))}, file)


def read_cache(folder, found):
    while True:
        for path, _, names in os.walk(folder):
            for name in names:
                with open(os.path.join(path, name)) as file:
                    found.put(json.load(file)["scenario"])
                time.sleep(0.005)  # of a file system that is far away


def looks_into_its_cache():
    """Healthy, as jchengai/planTF#2: before the first step of a training all folders of the cache are gone through,
    which takes long, and nothing is shown."""
    folder, found = in_folder("cache"), FORK.Queue(64)
    fill_cache(folder)
    child_of(read_cache, folder, found)
    scenarios = set()
    for number in itertools.count():
        scenarios.add(found.get())
        if number == 50:
            at("main")


class Shards(http.server.BaseHTTPRequestHandler):
    """A hub with a slow line."""

    def do_GET(self):
        at("hub")
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 40))
        self.end_headers()
        while True:
            self.wfile.write(os.urandom(4096))
            time.sleep(0.1)

    def log_message(self, *words):
        pass


def serve_hub(server):
    server.serve_forever()


def runs_the_example():
    """Healthy, as electron-shaders/MineDraft#4: the models of an example are not on this machine, and are fetched. That
    takes up to an hour, depending on the line."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shards)
    child_of(serve_hub, server)
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    server.socket.close()
    connection.request("GET", "/model-00001-of-00030.safetensors")
    answer = connection.getresponse()
    with open(in_folder("model.incomplete"), "wb") as file:
        for number in itertools.count():
            file.seek(number % 64 * 4096)
            file.write(answer.read(4096))
            if number == 3:
                at("main")


class Simulation:
    """An actor of a pool. It has nothing to do between two rounds."""

    def __init__(self, arguments, role):
        sys.argv, self.role = list(arguments), role

    def play(self, seed):
        work_for(0.05)
        return seed * 2

    def stay(self):
        at(self.role)


def pool_between_rounds():
    """Healthy, as ray-project/ray#13148: the actors of a pool are shown as idle, since no method of them runs. The
    driver puts the results of the last round together, which takes long."""
    ray = cluster(2)
    actor = ray.remote(num_cpus=1)(Simulation)
    actors = [actor.remote(sys.argv, role) for role in "ab"]
    from ray.util import ActorPool

    scores = list(ActorPool(actors).map(lambda one, seed: one.play.remote(seed), range(8)))
    ray.get([one.stay.remote() for one in actors])
    at("main")
    best = queue.PriorityQueue()
    while True:
        work_for(1)
        best.put(sum(scores))
        best.get()


PROGRAMS = {
    "starts-its-chips": starts_its_chips,
    "saves-in-another-process": saves_in_another_process,
    "consumer-stops-early": consumer_stops_early,
    "train-cli": train_cli,
    "trains-from-the-interface": trains_from_the_interface,
    "episodes-are-over": episodes_are_over,
    "routes-to-its-workers": routes_to_its_workers,
    "builds-everything": builds_everything,
    "looks-into-its-cache": looks_into_its_cache,
    "runs-the-example": runs_the_example,
    "pool-between-rounds": pool_between_rounds,
}

if __name__ == "__main__":
    run(PROGRAMS)
