"""A Ray actor that hangs, fourth set: `fourth_ray.py NAME FOLDER`."""

import sys

import ray

from tests.inferiors.live.place import at, run


@ray.remote(num_cpus=0)
class Router:
    def __init__(self, arguments):
        sys.argv[1:] = arguments  # the folder of place.at

    def route(self):
        """Asks for the replicas as everybody does: by a call of the router."""
        me = ray.get_runtime_context().current_actor
        at("a")
        return ray.get(me.replicas.remote())

    def replicas(self):
        return ["one", "two"]


def actor_calls_itself():
    """An actor does one call at a time, and this one waits for a second one of its own."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    router = Router.remote(sys.argv[1:])
    at("main")
    ray.get(router.route.remote())


PROGRAMS = {"actor-calls-itself": actor_calls_itself}

if __name__ == "__main__":
    run(PROGRAMS)
