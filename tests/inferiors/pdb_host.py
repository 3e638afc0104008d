"""A rank on a "host" of its own: `pdb_host.py HOST SILENCE STEPS`, as `pdb_rank.py step STEPS`.

SILENCE: seconds without a sign after which it gives up a rank of another host.
"""

import sys

from gdbext.rankpdb import host_folder, other_hosts
from tests.inferiors import pdb_rank

other_hosts._SIGN, other_hosts._DEAD = 0.05, float(sys.argv[2])
host_folder.host = lambda: sys.argv[1]
pdb_rank.main("step", int(sys.argv[3]))
