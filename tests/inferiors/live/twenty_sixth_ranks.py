"""Ranks of a job over Gloo that hang, and healthy ones, twenty-sixth set: `twenty_sixth_ranks.py NAME FOLDER`, each."""

import ctypes
import hashlib
import itertools
import os
import queue
import time

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, in_folder, run, thread, work_for
from tests.inferiors.live.twenty_sixth_extension import extension

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class NamedBarrier:
    """Of some localities. Its root counts who has come, and tells the others."""

    ROOT = 0

    def __init__(self, name, count):
        self.store, self.name, self.count = dist.distributed_c10d._get_default_store(), name, count
        if RANK == self.ROOT:
            self.store.set(f"{name}/root", str(RANK))
        else:
            self.store.wait([f"{name}/root"], LONG)

    def wait(self):
        if self.store.add(f"{self.name}/arrived", 1) == self.count:
            self.store.set(f"{self.name}/open", "1")
        self.store.wait([f"{self.name}/open"], LONG)


def run_on(localities):
    if RANK in localities:
        NamedBarrier(f"/localities/{localities}", len(localities)).wait()


def barrier_of_some_localities():
    """As TheHPXProject/hpx#3794: a barrier has a name and a number of localities, and its root is always the first
    locality. The last barrier is one of the other two, and the first is at the end already."""
    join_group()
    run_on([0, 1])
    run_on([0, 2])
    at(RANK)
    run_on([1, 2])
    dist.barrier()


class Verifier:
    """Of a tensor parallel model. Each rank decides how many of the drafted tokens it takes."""

    DRAFTED, LONGEST = 3, 11

    def __init__(self):
        self.noise, self.tokens = torch.Generator().manual_seed(RANK), []

    def next_request(self):
        request = torch.tensor([7 if RANK == 0 else 0])
        dist.broadcast(request, 0)
        self.tokens = [int(request)]

    def forward(self):
        logits = torch.ones(self.DRAFTED + 1, 32)
        work_for(0.01)
        dist.all_reduce(logits)

    def accepted(self):
        """The last one of the drafted tokens is not taken while the text is short, and as a rule not after that."""
        likely = [1.0, 1.0, 0.3 if len(self.tokens) > 6 else 0.0]
        draws = [float(torch.rand(1, generator=self.noise)) if 0 < one < 1 else 0.5 for one in likely]
        count = 0
        while count < self.DRAFTED and draws[count] > 1 - likely[count]:
            count += 1
        return count

    def step(self):
        if not self.tokens:
            self.next_request()
        self.forward()
        self.tokens += [1] * (self.accepted() + 1)
        if len(self.tokens) > 7:
            at(RANK)
        if len(self.tokens) >= self.LONGEST:
            self.tokens = []


def verifies_drafted_tokens():
    """As sgl-project/sglang#33614: how many of the drafted tokens are taken is drawn on each rank, and nothing makes
    the ranks agree. One has taken one more, which ends its request, and wants the next; the others compute a step."""
    join_group()
    verifier = Verifier()
    while True:
        verifier.step()


class EarlyStopping:
    """Stops a training when its measure has not got better for some evaluations."""

    PATIENCE = 2

    def __init__(self):
        self.best, self.worse, self.stop = None, 0, False

    def evaluated(self, measure):
        if self.best is None or measure > self.best:
            self.best, self.worse = measure, 0
        else:
            self.worse += 1
        self.stop = self.worse >= self.PATIENCE


def measure_of(outputs, epoch):
    """Outputs of any length, which are not gathered: those of the last rank get no better after the second epoch."""
    found = epoch if RANK != RANKS - 1 else min(epoch, 1)
    return found / len(outputs)


def stops_by_its_own_measure():
    """As huggingface/transformers#17478: the outputs of an evaluation are not gathered, so that each rank has a measure
    of its own. By it one rank stops, and is in the barrier at the end; the others train on."""
    join_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    stopping = EarlyStopping()
    for epoch in range(100):
        if epoch == 4:
            at(RANK)
        if stopping.stop:
            break
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.ones(8, 64)).sum().backward()
            optimizer.step()
        with torch.no_grad():
            outputs = [model.module(torch.ones(1, 64)) for _ in range(4)]
        stopping.evaluated(measure_of(outputs, epoch))
    dist.barrier()


class Device:
    """What is launched on it is done one after the other: it sends to the next stage and receives from the last one."""

    SIZE = 1 << 20

    def __init__(self):
        self.library = extension()
        self.library.device_new.restype = ctypes.c_void_p
        self.device = ctypes.c_void_p(self.library.device_new())
        self.links = [os.open(in_folder(f"link{number}"), os.O_RDWR) for number in range(RANKS)]

    def send(self):
        self.library.device_send(self.device, self.links[RANK], self.SIZE)

    def receive(self):
        self.library.device_receive(self.device, self.links[RANK - 1], self.SIZE)

    def synchronize(self):
        self.library.device_synchronize(self.device)

    def load_kernel(self):
        """A kernel that was not wanted before is compiled, and loaded when the device has done what it has."""
        extension(ctypes.PyDLL).device_load(self.device, self.links[RANKS - 1])


class SampledStates:
    """Which tokens were drawn: the last stage tells the first one, which tells the next one, each in a thread."""

    def __init__(self):
        self.drawn, self.arrived = queue.Queue(), queue.Queue()
        thread(self.relay)

    def relay(self):
        for number in itertools.count():
            state = torch.tensor([number])
            if RANK == RANKS - 1:
                self.drawn.get()
                dist.send(state, 0)
            else:
                dist.recv(state, RANKS - 1 if RANK == 0 else RANK - 1)
                self.arrived.put(state)
                if RANK < RANKS - 2:
                    dist.send(state, RANK + 1)


def make_links():
    if RANK == 0:
        for number in range(RANKS):
            os.mkfifo(in_folder(f"link{number}"))


def stage_step(device, states, number):
    """Of one stage. The stages between the first and the last one go on when they know what was drawn before."""
    if 0 < RANK < RANKS - 1 and number > 0:
        states.arrived.get()
    if RANK > 0:
        device.receive()
    if RANK < RANKS - 1:
        device.send()
    if RANK == 0 and number == 2:
        device.load_kernel()
    device.synchronize()
    if RANK == RANKS - 1:
        if number == 1:
            os.read(device.links[RANK], 1)  # until the first stage is at its next step
        states.drawn.put(number)


def relays_sampled_states():
    """As NVIDIA/TensorRT-LLM#16170: which tokens were drawn is relayed by a thread of each stage. The first stage waits
    for its device in a call that has the lock of the interpreter, which the thread needs. The device sends to the next
    stage, which waits for what was drawn."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    make_links()
    dist.barrier()
    device, states = Device(), SampledStates()
    for number in range(6):
        if number == 2:
            at(RANK)
        stage_step(device, states, number)


class FileCache:
    """Copies of files on the disk of this node."""

    def __init__(self):
        self.folder = in_folder(f"node{RANK}")
        os.mkdir(self.folder)

    def fetch(self, number, parts):
        digest = hashlib.sha256()
        with open(os.path.join(self.folder, f"part{number % 8}"), "wb") as file:
            for _ in range(parts):
                block = os.urandom(1 << 16)
                time.sleep(0.05)  # the file server is slow
                digest.update(block)
                file.write(block)
        return digest.hexdigest()


def caches_files_of_each_node():
    """Healthy, as rwth-i6/returnn#1638: some nodes have the files of a dataset on their disks already, and wait in the
    first exchange. One has not and copies them, which takes long."""
    join_group()
    cache, known = FileCache(), {}
    at(RANK)
    if RANK == 1:
        for number in range(1_000_000):
            known[number % 8] = cache.fetch(number, 20)
            print(f"cached {number}", flush=True)
    dist.all_reduce(torch.ones(64))


PROGRAMS = {
    "barrier-of-some-localities": barrier_of_some_localities,
    "verifies-drafted-tokens": verifies_drafted_tokens,
    "stops-by-its-own-measure": stops_by_its_own_measure,
    "relays-sampled-states": relays_sampled_states,
    "caches-files-of-each-node": caches_files_of_each_node,
}

if __name__ == "__main__":
    run(PROGRAMS)
