"""Ray actors that hang, and healthy ones: `ray_actors.py NAME FOLDER`."""

import os
import sys
import time

import ray

from tests.inferiors.live.place import LONG, at, read_for_ever, run


@ray.remote(num_cpus=0)
class Actor:
    def __init__(self, role, arguments):
        sys.argv[1:] = arguments  # the folder of place.at
        self.role = role

    def know(self, peer):
        self.peer = peer

    def ask(self, depth):
        """Asks the peer, which asks back: each is busy with its own question."""
        if depth == 2:
            at(self.role)
        return ray.get(self.peer.ask.remote(depth - 1)) if depth else 0

    def work(self, number):
        """A gloo rank; number 1 waits for a file."""
        import torch
        import torch.distributed as dist

        address = f"file://{os.path.join(sys.argv[2], 'rendezvous')}"
        dist.init_process_group("gloo", init_method=address, rank=number, world_size=2, timeout=LONG)
        dist.barrier()
        at(self.role)
        if number == 1:
            read_for_ever()
        dist.all_reduce(torch.ones(8))

    def stand(self):
        at(self.role)

    def nap(self):
        time.sleep(0.2)


def two_actors():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    return [Actor.remote(role, sys.argv[1:]) for role in ("a", "b")]


def ask_each_other():
    one, two = two_actors()
    ray.get([one.know.remote(two), two.know.remote(one)])
    at("main")
    ray.get([one.ask.remote(2), two.ask.remote(2)])


def actor_rank_waits():
    one, two = two_actors()
    at("main")
    ray.get([one.work.remote(0), two.work.remote(1)])


def actors_idle():
    """Healthy: actors without a task, a driver that sleeps."""
    actors = two_actors()
    ray.get([one.stand.remote() for one in actors])
    at("main")
    while True:
        time.sleep(1)


def actors_work():
    """Healthy: rounds of short tasks."""
    actors = two_actors()
    ray.get([one.stand.remote() for one in actors])
    at("main")
    while True:
        ray.get([one.nap.remote() for one in actors])


PROGRAMS = {
    "ask-each-other": ask_each_other,
    "actor-rank-waits": actor_rank_waits,
    "actors-idle": actors_idle,
    "actors-work": actors_work,
}

if __name__ == "__main__":
    run(PROGRAMS)
