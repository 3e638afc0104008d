"""Records small jobs by torch.profiler: four ranks over gloo, one of them late on purpose, or none.

python -m tests.traces.recording FOLDER [KIND ...] writes FOLDER/KIND/rank0.json.gz and so on.
"""

import gzip
import os
import shutil
import sys
import time
from pathlib import Path

RANKS, STEPS = 4, 12
WORK, LATE = 0.04, 0.06  # seconds
KINDS = {
    "even": (),
    "even-uneven-calls": (),
    "kernel-1": (1,),
    "kernel-3": (3,),
    "host-0": (0,),
    "host-2": (2,),
    "data-3": (3,),
    "data-1": (1,),
    "rotating": (0, 1, 2, 3),
    "rotating-host": (0, 1, 2, 3),
}
"""Each with the ranks that are late."""


class _Data:
    """Rows that take their time on one rank."""

    def __init__(self, torch, slow):
        self.torch, self.slow = torch, slow

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        if self.slow(index):
            time.sleep(LATE)
        return self.torch.zeros(4)


def _job(torch, dist, kind, rank, slow):
    late = KINDS[kind]

    def is_late(step):
        return rank == (step % RANKS if len(late) > 1 else late[0]) if late else False

    data = torch.utils.data.DataLoader(
        _Data(torch, lambda step: kind.startswith("data") and is_late(step)), batch_size=1
    )
    vector = torch.ones(20_000)
    for step, _ in enumerate(data):
        torch.randn(40, 40) @ torch.randn(40, 40)
        time.sleep(WORK)
        if is_late(step):
            if kind.startswith("kernel") or kind == "rotating":
                begin = time.perf_counter()
                while time.perf_counter() - begin < LATE:
                    slow @ slow
            elif not kind.startswith("data"):
                time.sleep(LATE)
        dist.all_reduce(vector)
        if kind == "even-uneven-calls":
            dist.all_gather([torch.empty(100) for _ in range(RANKS)], torch.zeros(100))


def _rank(rank, folder, kinds, port):
    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(RANKS))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    slow = torch.randn(1000, 1000)
    _job(torch, dist, "even", rank, slow @ slow)  # what happens once is over
    for kind in kinds:
        dist.barrier()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            _job(torch, dist, kind, rank, slow)
        path = Path(folder) / kind / f"rank{rank}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        profile.export_chrome_trace(str(path))
        with open(path, "rb") as source, gzip.open(f"{path}.gz", "wb") as target:
            shutil.copyfileobj(source, target)
        path.unlink()
        dist.barrier()
    dist.destroy_process_group()


def record(folder, kinds=tuple(KINDS), port=29671):
    """Runs the jobs one after the other, in four processes."""
    import torch.multiprocessing

    torch.multiprocessing.spawn(_rank, (str(folder), tuple(kinds), port), nprocs=RANKS)


if __name__ == "__main__":
    record(sys.argv[1], sys.argv[2:] or tuple(KINDS))
