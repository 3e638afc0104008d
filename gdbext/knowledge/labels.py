"""The vocabulary of the answer: every kind of wait and every cause, with one line of meaning."""

from gdbext.knowledge.causes.late_ranks import LATE_CAUSES
from gdbext.knowledge.word_tables import pairs

WAIT_KINDS = {
    "pinned-host-alloc": "allocates or frees page-locked host memory (cudaMallocHost, ...): waits for the device",
    "device-alloc": "allocates device memory (cudaMalloc): may wait for the device",
    "device-free": "frees device memory (cudaFree): waits for the device",
    "cublas": "inside cuBLAS, which allocates or loads kernels on first use",
    "module-load": "creates a CUDA context, or loads a module or a kernel: waits for the context or the driver's lock",
    "kernel-launch": "launches a kernel: the launch queue is full, launches are blocking, or the kernel is loading",
    "stream-sync": "waits until a CUDA stream has finished",
    "event-sync": "waits for a CUDA event",
    "device-sync": "waits until the whole device has finished",
    "memcpy-sync": "copies memory synchronously: waits for earlier work of its stream",
    "nccl-init": "sets up an NCCL communicator: waits for the other ranks",
    "nccl-group-launch": "inside a call that launches an NCCL collective, or in torch's Python wrapper of it",
    "nccl-destroy-abort": "tears down an NCCL communicator",
    "store-wait": "waits for a key of the rendezvous store",
    "mpi": "inside MPI, or in a network library, also without MPI: UCX, libfabric, PSM2",
    "gloo": "inside a Gloo collective over the CPU",
    "ipc-queue": "waits for a message of another process of the engine, or for an item of a queue",
    "gil": "waits for Python's global interpreter lock",
    "mutex": "waits for a lock",
    "condvar-idle": "waits or polls until another thread signals it (normal for helper threads), or for a fixed time",
    "io": "waits for a file, pipe or socket",
    "python-code": "runs or sleeps in Python code",
    "native-compute": "computes on the CPU",
    "exited-or-crashed": "the process is gone, a zombie, or in a fatal signal",
    "sigbus": "got SIGBUS: a mapped page has no backing memory",
    "cuda-error-throw": "throws because a CUDA, cuBLAS or NCCL call failed",
    "unknown": "gdbext recognises no call on the stack",
}

CAUSES = {
    "implicit-sync-vs-collective": "one rank is in a call that waits for the device; its peers wait in a collective",
    "lazy-module-load-vs-collective": "a lazily loaded kernel waits for a device that a collective keeps busy",
    "missing-rank": "a rank does not reach the collective: it is gone, or somewhere else in the program",
    "collective-mismatch": "ranks are in different collectives, or in the same one with different sizes",
    "multi-comm-ordering": "ranks use two communicators in different orders",
    "init-rendezvous": "a communicator is being set up, and a member has not joined",
    "network-transport": "the network between the ranks does not deliver data",
    "p2p-or-topology": "peer-to-peer access between GPUs does not work",
    "launch-serialisation": "launches block one another: full queue, CUDA_LAUNCH_BLOCKING, one connection",
    "gil-deadlock": "a thread holds the GIL and waits for a thread that needs the GIL",
    "lock-order-deadlock": "threads wait for each other's locks, or one for a lock that it holds",
    "fork-after-cuda": "a forked child uses CUDA or a lock that its parent held",
    "destructor-or-teardown": "a communicator or context is torn down while work is in flight",
    "shm-too-small": "/dev/shm is full",  # noqa: S108 - a place, no file of ours
    "gpu-fault": "the GPU reported an error",
    "driver-bug": "the driver itself is stuck",
    "not-a-hang": "nothing wrong: idle, or busy and making progress",
    **LATE_CAUSES,
    "other": "a rare cause without a label of its own",
    "unknown": "not enough evidence for a cause",
}

CONFIDENCE = ("low", "medium", "high")

WAIT_GROUPS = pairs(
    "pinned-host-alloc=implicit device-alloc=implicit device-free=implicit cublas=implicit module-load=implicit "
    "kernel-launch=launch stream-sync=device event-sync=device device-sync=device memcpy-sync=device nccl-init=init "
    "nccl-group-launch=collective nccl-destroy-abort=teardown store-wait=init mpi=collective gloo=collective "
    "ipc-queue=elsewhere gil=lock mutex=lock condvar-idle=elsewhere io=elsewhere python-code=elsewhere "
    "native-compute=elsewhere exited-or-crashed=fatal sigbus=fatal cuda-error-throw=fatal unknown=unknown"
)
"""What the kinds have in common when ranks are compared.

implicit: calls that wait for the device although nobody asked; collective: in a collective on the CPU's side;
device: waits for the GPU as the program asked; elsewhere and lock: outside of any communication.
"""

RULE_GROUPS = {"mpi-init": "init", "pmix-init": "init", "openshmem-init": "init"}
"""Frame rules whose group is another one than that of their kind: all ranks meet in them."""

BLOCKING = ("gloo", "mpi")
"""Kinds whose collectives return when they are done; those of NCCL return when they are launched."""
SLEEPING = ("gloo",)
"""Kinds whose collectives sleep until they are done; MPI polls."""
POLLING = ("mpi",)
"""Kinds of libraries that poll while they wait for others: who sleeps inside for a lock waits for its owner."""
OF_ITS_OWN = ("python-code", "native-compute")
"""Kinds of places in code of the program itself, where nothing is waited for."""
OWN_SLEEPS = ("python-sleep", "os-sleep-python", "os-sleep")
"""Frame rules of a sleep that the program itself asked for: the end of it needs nobody."""
