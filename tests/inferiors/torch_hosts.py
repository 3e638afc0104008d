"""A rank on a "host" of its own: it reaches the other one only through the store of torch.distributed."""

import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _set_pg_timeout

from gdbext.rankpdb import breakpoint_, other_hosts

other_hosts._SIGN, other_hosts._DEAD = 0.1, float(sys.argv[2])
dist.init_process_group("gloo")
dist.barrier()  # on a busy machine one rank imports torch seconds after another: only a step has the short timeout
_set_pg_timeout(datetime.timedelta(seconds=float(sys.argv[1])))
for step in range(3):
    breakpoint_(rank=1)
    value = torch.tensor([dist.get_rank() + step], dtype=torch.int64)
    try:
        dist.all_reduce(value)
    except RuntimeError:
        os.write(1, f"step {step} failed\n".encode())
        break
    os.write(1, f"step {step} {'right' if int(value) == 1 + 2 * step else 'wrong'}\n".encode())
