"""A rank of a training-like loop: each step adds up over all ranks, and one rank stops before it."""

import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _set_pg_timeout

from gdbext.rankpdb import breakpoint_

dist.init_process_group("gloo")
dist.barrier()  # on a busy machine one rank imports torch seconds after another: only a step has the short timeout
_set_pg_timeout(datetime.timedelta(seconds=float(sys.argv[1])))
rank, world = dist.get_rank(), dist.get_world_size()
os.write(1, f"rank {rank} is pid {os.getpid()}\n".encode())
for step in range(int(sys.argv[2])):
    value = torch.tensor([rank + step], dtype=torch.int64)
    dist.all_reduce(value)
    breakpoint_(rank=2)
    dist.all_reduce(value)
    wanted = world * sum(number + step for number in range(world))
    os.write(1, f"rank {rank} step {step} {'right' if int(value) == wanted else 'wrong'}\n".encode())
dist.destroy_process_group()
