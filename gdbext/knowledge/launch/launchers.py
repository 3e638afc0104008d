"""How ranks are started: variables of every launcher, and the processes beside the ranks that are none themselves.

Titles are the arguments of a process joined by blanks (`/proc/PID/cmdline`), or what setproctitle put there.
"""

from typing import Tuple

from gdbext.knowledge.row_kinds import RankVariable, TitleRule, TitleShape

PROGRAM = r"^(?:\S*/)?"
"""Start of a pattern: the program itself, with or without its folder."""

SCRIPT = r"^(?:\S*python[\d.]*\s+(?:-\S+\s+)*)?(?:\S*/)?"
"""Start of a pattern: the program itself, or a script given to Python."""

MODULE = r"^\S*python[\d.]*\s+(?:-\S+\s+)*?-m\s+"
"""Start of a pattern: a module that Python runs."""

_TORCH_JOB = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")

MINDSPORE = (
    RankVariable(
        "MindSpore",
        rank="RANK_ID",
        world_size="MS_WORKER_NUM",
        local_rank="DEVICE_ID",
        node="MS_NODE_ID",
        job=("MS_SCHED_HOST", "MS_SCHED_PORT"),
        needs=("MS_ROLE",),
        excludes=(("MS_ROLE", "^MS_SCHED$", "scheduler"), ("MS_ROLE", "^MS_PSERVER$", "parameter server")),
        source="mindspore 2.10 process_entity/_api.py: the scheduler carries RANK_ID=0 too",
    ),
    RankVariable(
        "MindSpore rank table",
        rank="RANK_ID",
        world_size="RANK_SIZE",
        local_rank="DEVICE_ID",
        job=("RANK_TABLE_FILE",),
        needs=("RANK_TABLE_FILE",),
        source="mindspore 2.10, start by rank table",
    ),
)

RTP_LLM = RankVariable(
    "RTP-LLM",
    rank="WORLD_RANK",
    world_size="WORLD_SIZE",
    local_size="LOCAL_WORLD_SIZE",
    source="rtp_llm start_backend_server.py: set just before each rank is spawned; there is no LOCAL_RANK",
)

VARIABLES: Tuple[RankVariable, ...] = (
    *MINDSPORE,
    RankVariable(
        "torchrun",
        rank="RANK",
        world_size="WORLD_SIZE",
        local_rank="LOCAL_RANK",
        local_size="LOCAL_WORLD_SIZE",
        node="GROUP_RANK",
        nodes="GROUP_WORLD_SIZE",
        job=_TORCH_JOB,
        needs=("TORCHELASTIC_RUN_ID",),
        source="torch local_elastic_agent.py; LOCAL_RANK is 0 everywhere with --virtual-local-rank",
    ),
    RTP_LLM,
    RankVariable(
        "Open MPI",
        rank="OMPI_COMM_WORLD_RANK",
        world_size="OMPI_COMM_WORLD_SIZE",
        local_rank="OMPI_COMM_WORLD_LOCAL_RANK",
        local_size="OMPI_COMM_WORLD_LOCAL_SIZE",
        job=("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"),
        source="Open MPI 4 and 5; the namespace of processes that were spawned by MPI differs from their parents'",
    ),
    RankVariable(
        "MVAPICH2",
        rank="MV2_COMM_WORLD_RANK",
        world_size="MV2_COMM_WORLD_SIZE",
        local_rank="MV2_COMM_WORLD_LOCAL_RANK",
        local_size="MV2_COMM_WORLD_LOCAL_SIZE",
        source="public launch scripts",
    ),
    RankVariable(
        "PALS",
        rank="PALS_RANKID",
        local_rank="PALS_LOCAL_RANKID",
        job=("PALS_APID",),
        source="public launch scripts of HPE Cray systems",
    ),
    RankVariable(
        "PMI (MPICH, Hydra, Intel MPI)",
        rank="PMI_RANK",
        world_size="PMI_SIZE",
        local_rank="MPI_LOCALRANKID",
        local_size="MPI_LOCALNRANKS",
        source="Hydra and Intel MPI; the local ones are also set by Hydra",
    ),
    RankVariable("PMI of old launchers", rank="PMI_ID", world_size="PMI_SIZE", source="trtllm-llmapi-launch"),
    RankVariable("PMIx", rank="PMIX_RANK", job=("PMIX_NAMESPACE",), source="any PMIx launcher, PRRTE, srun --mpi=pmix"),
    RankVariable(
        "Flux",
        rank="FLUX_TASK_RANK",
        world_size="FLUX_JOB_SIZE",
        local_rank="FLUX_TASK_LOCAL_ID",
        nodes="FLUX_JOB_NNODES",
        job=("FLUX_JOB_ID",),
        source="flux-environment(7)",
    ),
    RankVariable(
        "torch environment",
        rank="RANK",
        world_size="WORLD_SIZE",
        local_rank="LOCAL_RANK",
        local_size="LOCAL_WORLD_SIZE",
        job=_TORCH_JOB,
        source="torch env:// rendezvous without torchrun; pods also carry RANK as a node's number, so it counts less",
    ),
    RankVariable(
        "Slurm",
        rank="SLURM_PROCID",
        world_size="SLURM_NTASKS",
        local_rank="SLURM_LOCALID",
        node="SLURM_NODEID",
        nodes="SLURM_JOB_NUM_NODES",
        job=("SLURM_JOB_ID", "SLURM_STEP_ID"),
        source="srun; a batch script and all it starts carry SLURM_PROCID=0, so it counts least",
    ),
)
"""In order of trust: the first row whose rank variable is set, and that is not excluded, names the rank."""

RANK_ARGUMENTS: Tuple[TitleRule, ...] = (
    TitleRule(r"(?:^|\s)--?(?:global[-_])?rank[=\s]+(?P<rank>\d+)(?=\s|$)", "rank", "usual option of launch scripts"),
    TitleRule(r"(?:^|\s)--?(?:world|mpi)[-_]rank[=\s]+(?P<rank>\d+)(?=\s|$)", "rank", "usual option"),
    TitleRule(
        r"(?:^|\s)--?local[-_]rank[=\s]+(?P<local_rank>\d+)(?=\s|$)",
        "rank",
        "torch.distributed.launch before 2.0, DeepSpeed",
        local=True,
    ),
    TitleRule(r"(?:^|\s)--?tp[-_]rank[=\s]+(?P<tp>\d+)(?=\s|$)", "rank", "workers of a parallel group"),
    TitleRule(r"(?:^|\s)--?pp[-_]rank[=\s]+(?P<pp>\d+)(?=\s|$)", "rank", "workers of a parallel group"),
    TitleRule(r"(?:^|\s)--?dp[-_]rank[=\s]+(?P<dp>\d+)(?=\s|$)", "rank", "workers of a parallel group"),
    TitleRule(r"(?:^|[\s:\[(])rank[\s:_=#-]?(?P<rank>\d+)(?=[\s\])]|$)", "rank", "titles that people set themselves"),
)
"""Rank numbers in the arguments of a process that is known to be a rank."""

WORLD_SIZE_ARGUMENTS = ("--world-size", "--world_size")
"""Options that say how many ranks the whole job has."""

LOCAL_SIZE_ARGUMENTS = ("--nproc-per-node", "--nproc_per_node", "--num-gpus-per-node", "--local_worker_num")
"""Options of launchers that say how many ranks they start on this host."""

HOST_COUNT_ARGUMENTS = ("--nnodes", "--num-nodes", "--num_machines", "--nnode")
"""Options of launchers and front ends that say on how many hosts the job runs."""

LOOPBACK = ("localhost", "127.0.0.1", "::1", "ip6-localhost")
"""Addresses of a rendezvous that only processes of this host can reach."""

_BESIDE: Tuple[Tuple[str, str, str], ...] = (
    # where the name stands, the names, the role
    (PROGRAM, r"(?:cuda-gdb|gdb(?:server)?|lldb|rr|[sl]trace|perf|eu-stack)(?:-\S+)?", "debugger"),
    (SCRIPT, r"py-spy|pystack|gdbext(?:\.pyz)?|austin|memray", "debugger"),
    (r"\s-c\s", r"# gdbext on a host", "debugger"),  # collect/hosts/fan_out.py: srun gives it the variables of a rank
    (MODULE, r"(?:gdbext|pystack|memray)(?:\.\S+)?", "debugger"),
    (PROGRAM, r"nsys|ncu|compute-sanitizer|TreeLauncher\S*|ncclras|nvidia-smi|nvtop", "tool"),
    (PROGRAM, r"(?:mpirun|mpiexec|orterun|prterun|oshrun)(?:[._-]\w+)?", "launcher"),
    (PROGRAM, r"orted|prted|prte|hydra_\w+|mpispawn|mpirun_rsh", "launcher"),  # daemons of MPI
    (PROGRAM, r"srun|salloc|slurmstepd:?|slurmd|slurm_script", "launcher"),
    (PROGRAM, r"palsd|apinit|aprun|flux-\w+|jsrun|jsmd", "launcher"),
    (SCRIPT, r"torchrun|torch/distributed/(?:run|launch)\.py", "launcher"),
    (MODULE, r"torch\.distributed\.(?:run|launch)", "launcher"),
    (SCRIPT, r"accelerate(?:-launch)?|deepspeed|horovodrun|composer|msrun", "launcher"),
    (MODULE, r"(?:accelerate\.commands|deepspeed\.launcher|mindspore\.parallel\.cluster)\.\S+", "launcher"),
    (SCRIPT, r"dlrover-run", "launcher"),  # in DLRover's agent RANK is the number of the node
    (MODULE, r"dlrover\.\S+", "launcher"),
    (MODULE, r"mpi4py\.futures", "launcher"),  # the manager of a pool; its servers (mpi4py.futures.server) work
    (PROGRAM, r"raylet|gcs_server", "Ray service"),
    (SCRIPT, r"ray/(?:dashboard|autoscaler|_private|util/client/server)/\S+", "Ray service"),
    (SCRIPT, r"ray\s+(?:start|job|dashboard)", "Ray service"),
    (r"^ray::", r"IDLE|DashboardAgent|RuntimeEnvAgent", "Ray service"),
    (r"^", r"ray-dashboard-[\w-]+", "Ray service"),  # setproctitle in ray/dashboard/subprocesses/module.py
    (r"^-?(?:\S*/)?", r"(?:ba|z|da|a|k|mk|c|tc|fi)?sh", "shell"),  # "-bash" is a login shell
    (PROGRAM, r"busybox\s+(?:a|hu)?sh", "shell"),
    (PROGRAM, r"sudo|su|env|nohup|timeout|time|nice|setsid|taskset|numactl|xargs", "shell"),
    (PROGRAM, r"tini|dumb-init|docker-init|catatonit|s6-\w+|supervisord", "shell"),
    (PROGRAM, r"systemd|init|sshd:?|tmux:?|screen|SCREEN|login|containerd-shim\S*", "shell"),
    (SCRIPT, r"(?:uv|poetry|conda|mamba|pipenv|hatch)\s+run|uvx", "shell"),
    (PROGRAM, r"tee|cat|sleep|tail|watch|make|ssh|docker|podman|kubectl", "tool"),
    (r"\b", r"(?:multiprocessing|loky\.backend)\.(?:resource_tracker|semaphore_tracker)\s.*", "resource tracker"),
    (r"\b", r"multiprocessing\.forkserver\s.*", "helper"),
    (r"\b", r"_inductor[./]compile_worker\S*", "helper"),
    (PROGRAM, r"torch_shm_manager|nvcc|ptxas|cicc|ninja|cc1plus|g\+\+|gcc|c\+\+|ld", "helper"),
    (SCRIPT, r"pt_data_worker|wandb(?:-\S+)?|tensorboard", "helper"),
)

NOT_RANKS: Tuple[TitleRule, ...] = tuple(
    TitleRule(f"{start}(?:{names})(?:\\s|$)", role, "names of the programs") for start, names, role in _BESIDE
)
"""Never a rank, whatever variables they carry: they inherit them, or set them for others."""

SERVICES = ("Ray service", "resource tracker", "shell", "debugger")
"""Roles of `NOT_RANKS` which no process of a program waits for a message or a lock of."""

EVIDENCE_LIBRARIES: Tuple[str, ...] = (
    r"(?:^|/)lib(?:cuda|cudart|cublas|cublasLt|nccl)\b\S*\.so",
    r"(?:^|/)lib(?:torch|torch_cpu|torch_cuda|torch_python|torch_npu|c10|c10_cuda|gloo)\.so",
    r"(?:^|/)lib(?:mpi|mpi_\w+|mpich\w*|pmi|pmi2|pmix)\.so",
    r"(?:^|/)lib(?:rccl|amdhip64|hccl|ascendcl|mindspore\w*)\.so",
)
"""Mapped files, searched in the path, that say: this process can take part in collectives."""

COLLECTIVE_LIBRARIES: Tuple[str, ...] = (r"(?:^|/)lib(?:nccl|rccl|hccl)\b\S*\.so",)
"""A process that maps one of these and holds an accelerator open is taken for a rank when nothing else says who is."""

ACCELERATOR_FILES = r"^/dev/(?:nvidia\d+|davinci\d+|kfd)$"
"""Device files that a process working on an accelerator holds open."""

FORKSERVER = r"\bmultiprocessing\.forkserver\s"
"""Title of multiprocessing's fork server and of all that it forks (cpython multiprocessing/forkserver.py)."""

TITLE_SHAPES: Tuple[TitleShape, ...] = (
    TitleShape(r"^.*\bmultiprocessing\.spawn\s.*", "multiprocessing.spawn", "cpython multiprocessing/spawn.py"),
    TitleShape(r"^.*\bmultiprocessing\.forkserver\s.*", "multiprocessing.forkserver", "cpython forkserver.py"),
    TitleShape(
        r"^.*\bloky\.backend\.popen_\w+\s.*",
        "loky",
        "joblib/externals/loky/backend/popen_loky_posix.py; joblib/parallel.py _retrieve polls with a sleep",
        with_driver=True,
    ),
    TitleShape(r"^gunicorn: worker\b.*", "gunicorn: worker", "gunicorn util.py, where setproctitle is installed"),
    TitleShape(r"^ray::(\w+).*", r"ray::\1", "ray sets `ray::Class`, and `ray::Class.method` while a method runs"),
)
"""What titles of workers have in common, where they differ in more than numbers."""

SUPERVISORS = r"(?:^|[\s/])(?:uvicorn|hypercorn|granian|fastapi)\s.*--workers\b|(?:^|[\s/])gunicorn\b"
"""Web servers that start workers and serve nothing themselves."""

WAITS_OF_DRIVERS = (
    r"(?:do_wait|kernel_wait4|kernel_waitid|poll_schedule_timeout|do_sys_poll|do_select|ep_poll|do_epoll\w*"
    r"|sigsuspend|do_sigtimedwait|hrtimer_nanosleep)\b"
)
"""Where the main thread of a program that only waits for its workers stands in the kernel: wait(2), poll(2), select(2),
epoll(7), sigwait(3), sleep(3). One that waits for a result or a lock stands elsewhere."""

MANAGER_SOCKETS = r"/pymp-[^/\s]+/listener-"
"""Path of the Unix socket that a process of multiprocessing listens on (cpython multiprocessing/connection.py)."""

LAUNCHER_FILES = r"(?:^|/)torch/distributed/(?:run|launch|launcher/api)\.py$|(?:^|/)accelerate/commands/launch\.py$"
"""Python files whose frames belong to a launcher, never to a rank."""
