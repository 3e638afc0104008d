"""Jobs as their launchers and servers start them: `groups.py KIND FOLDER`.

Every process of the job writes FOLDER/rank-PID or FOLDER/other-PID when it stands where it stays, then waits. A rank
with a number writes it into its file. `KINDS` says for each kind how many ranks there are and whether they have
numbers.
"""

import contextlib
import functools
import multiprocessing
import multiprocessing.connection
import os
import subprocess
import sys
import time

HERE = os.path.abspath(__file__)
PYTHON = sys.executable
RANKS = 3

# kind: (how many ranks, whether they know their numbers, what must be installed)
KINDS = {
    "torchrun": (RANKS, True, "torch"),
    "torch-launch": (RANKS, True, "torch"),
    "torch-spawn-environment": (RANKS, True, "torch"),
    "torch-spawn-arguments": (RANKS, False, "torch"),
    "torch-fork-environment": (RANKS, True, "torch"),
    "torch-forkserver": (RANKS, False, "torch"),
    "torch-loaders": (RANKS, True, "torch"),
    "torch-subprocess-arguments": (RANKS, True, "torch"),
    "torch-late-rank": (RANKS, False, "torch"),
    "fork": (RANKS, False, ""),
    "spawn": (RANKS, False, ""),
    "forkserver": (RANKS, False, ""),
    "manager": (RANKS, False, ""),
    "pool-that-waits": (RANKS + 1, False, ""),
    "executor-that-waits": (RANKS + 1, False, ""),
    "one-forked-child": (2, False, ""),
    "native-fork": (RANKS, False, ""),
    "shell-loop": (RANKS, True, ""),
    "mpirun": (RANKS, True, ""),
    "accelerate-debug-launcher": (RANKS, False, "accelerate"),
    "joblib": (RANKS + 1, False, "joblib"),
    "gunicorn": (RANKS, False, "gunicorn"),
    "uvicorn": (RANKS, False, "uvicorn"),
    "ray-actors": (RANKS, True, "ray"),
}


def stand(folder, role="rank", number=None):
    """Say who we are, and stay."""
    draft = os.path.join(folder, f".{os.getpid()}")
    with open(draft, "w") as file:
        file.write("" if number is None else str(number))
    os.rename(draft, os.path.join(folder, f"{role}-{os.getpid()}"))


def stay():
    while True:
        time.sleep(3600)


def plain(folder, *_):
    stand(folder)
    stay()


def busy_task(folder):
    stand(folder)
    stay()


def environment(rank, world, port):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))


def torch_rank(rank, world, folder, how, port, number=True):
    """A rank of gloo: by variables that it sets itself, or by an address among the arguments."""
    import torch
    import torch.distributed as dist

    if how == "environment":
        environment(rank, world, port)
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    dist.all_reduce(torch.ones(1))
    stand(folder, number=rank if number else None)
    stay()


def late_rank(rank, world, folder, port):
    """The last rank never reaches the store: the others wait for it there."""
    import datetime
    import threading

    import torch.distributed as dist

    if rank == world - 1:
        stand(folder)
        stay()
    threading.Timer(1.0, stand, (folder,)).start()
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world, timeout=datetime.timedelta(hours=1)
    )


def by_variables(folder):
    """A rank that a launcher has numbered."""
    stand(folder, number=int(os.environ.get("RANK") or os.environ["OMPI_COMM_WORLD_RANK"]))
    stay()


def with_loader(rank, world, folder, port):
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader

    environment(rank, world, port)
    dist.init_process_group("gloo")
    loader = iter(DataLoader(torch.zeros(64), num_workers=2))
    next(loader)
    stand(folder, number=rank)
    stay()


def free_port():
    import random
    import socket

    for port in random.SystemRandom().sample(range(10_000, 29_000), 100):  # those above may be given to anybody
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")


def processes(method, target, arguments, count=RANKS):
    context = multiprocessing.get_context(method)
    started = [context.Process(target=target, args=(*arguments(rank),)) for rank in range(count)]
    for one in started:
        one.start()
    return started


def wait_for(started, folder):
    stand(folder, "other")
    for one in started:
        one.join()


def python(*words, **more):
    return subprocess.Popen([PYTHON, HERE, *words], **more)


def main(kind, folder):
    port = free_port()
    spawn = functools.partial(processes, "spawn")
    if kind == "torchrun":
        words = ["-m", "torch.distributed.run", f"--nproc-per-node={RANKS}", f"--master-port={port}"]
        os.execv(PYTHON, [PYTHON, *words, HERE, "variables", folder])
    elif kind == "torch-launch":
        words = ["-m", "torch.distributed.launch", f"--nproc-per-node={RANKS}", f"--master-port={port}", "--use-env"]
        os.execv(PYTHON, [PYTHON, *words, HERE, "variables", folder])
    elif kind == "torch-spawn-environment":
        import torch.multiprocessing as mp

        stand(folder, "other")
        mp.spawn(torch_rank, (RANKS, folder, "environment", port), nprocs=RANKS)
    elif kind == "torch-spawn-arguments":
        import torch.multiprocessing as mp

        stand(folder, "other")
        mp.spawn(torch_rank, (RANKS, folder, "arguments", port, False), nprocs=RANKS)
    elif kind == "torch-fork-environment":
        wait_for(processes("fork", torch_rank, lambda rank: (rank, RANKS, folder, "environment", port)), folder)
    elif kind == "torch-forkserver":
        wait_for(
            processes("forkserver", torch_rank, lambda rank: (rank, RANKS, folder, "arguments", port, False)), folder
        )
    elif kind == "torch-loaders":
        wait_for(spawn(with_loader, lambda rank: (rank, RANKS, folder, port)), folder)
    elif kind == "torch-subprocess-arguments":
        words = [["torch", folder, str(port), "--rank", str(rank)] for rank in range(RANKS)]
        started = [python(*one) for one in words]
        stand(folder, "other")
        for one in started:
            one.wait()
    elif kind == "torch-late-rank":
        wait_for(spawn(late_rank, lambda rank: (rank, RANKS, folder, port)), folder)
    elif kind in ("fork", "spawn", "forkserver"):
        wait_for(processes(kind, plain, lambda rank: (folder, rank)), folder)
    elif kind == "manager":
        with multiprocessing.get_context("fork").Manager() as manager:
            queue = manager.Queue()
            wait_for(processes("fork", plain, lambda rank: (folder, queue)), folder)
    elif kind == "pool-that-waits":
        with multiprocessing.get_context("fork").Pool(RANKS) as pool:
            result = pool.map_async(busy_task, [folder] * RANKS, chunksize=1)
            stand(folder)
            result.get()
    elif kind == "executor-that-waits":
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(RANKS, mp_context=multiprocessing.get_context("spawn")) as pool:
            waiting = [pool.submit(busy_task, folder) for _ in range(RANKS)]
            stand(folder)
            waiting[0].result()
    elif kind == "one-forked-child":
        child = os.fork()
        stand(folder)
        if child:
            os.waitpid(child, 0)
        stay()
    elif kind == "shell-loop":
        loop = f'for r in 0 1 2; do RANK=$r WORLD_SIZE={RANKS} "{PYTHON}" "{HERE}" variables "{folder}" & done; wait'
        os.execv("/bin/sh", ["sh", "-c", loop])
    elif kind == "mpirun":
        words = ["--allow-run-as-root", "--oversubscribe", "-n", str(RANKS), PYTHON, HERE, "variables", folder]
        os.execvp("mpirun", ["mpirun", *words])
    elif kind == "accelerate-debug-launcher":
        from accelerate import debug_launcher

        stand(folder, "other")
        debug_launcher(plain, (folder,), num_processes=RANKS)
    elif kind == "joblib":
        from joblib import Parallel, delayed

        stand(folder)
        Parallel(n_jobs=RANKS)(delayed(busy_task)(folder) for _ in range(RANKS))
    elif kind in ("gunicorn", "uvicorn"):
        os.environ.update(GROUPS_FOLDER=folder, PYTHONPATH=os.path.dirname(HERE))
        words = {
            "gunicorn": ["-m", "gunicorn", "-w", str(RANKS), "-b", f"127.0.0.1:{port}", "groups:serve()"],
            "uvicorn": ["-m", "uvicorn", "--workers", str(RANKS), "--port", str(port), "--factory", "groups:serve"],
        }
        os.execv(PYTHON, [PYTHON, *words[kind]])
    elif kind == "ray-actors":
        import ray

        ray.init(num_cpus=RANKS, include_dashboard=False, log_to_driver=False)
        actor = ray.remote(num_cpus=1)(Actor)
        actors = [actor.remote() for _ in range(RANKS)]
        stand(folder, "other")
        ray.get([one.work.remote(rank, RANKS, folder, port) for rank, one in enumerate(actors)])
    else:
        raise SystemExit(f"unknown kind {kind}")


class Actor:
    def work(self, rank, world, folder, port):
        torch_rank(rank, world, folder, "environment", port)


def serve():
    """An application of a web server, made anew in each worker."""
    stand(os.environ["GROUPS_FOLDER"])

    def application(environ, start_response):
        start_response("200 OK", [])
        return [b""]

    return application


if __name__ == "__main__":
    if sys.argv[1] == "variables":
        by_variables(sys.argv[2])
    elif sys.argv[1] == "torch":
        torch_rank(int(sys.argv[5]), RANKS, sys.argv[2], "arguments", int(sys.argv[3]))
    else:
        main(*sys.argv[1:3])
