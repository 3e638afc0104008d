"""compute-sanitizer as a server needs it: options, what each release calls them, where the tool is, what else it needs,
and where in the command line of a launcher it belongs (rows).

An option is given where the tool's own `--help` lists it, so that a release beyond these works too.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Tuple

PROGRAM = "compute-sanitizer"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
ERRORS_FOUND = 86
"""The exit status that we ask for where errors were found: one that few programs have."""
SLOWER = "loading a model under the sanitizer takes 10 to 50 times as long"

_HELP = "compute-sanitizer --help of 2020.3, 2022.3, 2024.1, 2025.2, 2025.3, 2025.4, 2026.1, 2026.2 and 2026.4"
_NOTES = "Compute Sanitizer release notes"


class OptionRow(NamedTuple):
    """An option that each run gets. `value` may have {tool} and {log}."""

    name: str
    value: str
    why: str
    source: str


OPTIONS: Tuple[OptionRow, ...] = (
    OptionRow("--tool", "{tool}", "", _HELP),
    OptionRow(
        "--target-processes", "all", "workers are watched too", f"{_HELP}: application-only by default until 2024.1"
    ),
    OptionRow("--launch-timeout", "0", "a server connects late", f"{_HELP}: 10 s for one process, 60 s for several"),
    OptionRow("--max-connections", "128", "a port for each rank of a host", f"{_HELP}: 10 by default"),
    OptionRow("--print-limit", "1000", "enough of each kind, and no full disk", f"{_HELP}: 10000, 100 since 2024.1"),
    OptionRow("--num-callers-host", "50", "frames of a backtrace", f"{_HELP}: none by default, in no 2020 release"),
    OptionRow("--strip-paths", "no", "libraries are found by their paths", f"{_HELP}: since 2025, yes by default"),
    OptionRow("--error-exitcode", str(ERRORS_FOUND), "the status where errors were found", _HELP),
    OptionRow("--log-file", "{log}", "", _HELP),
)


class FilterRow(NamedTuple):
    """How one release takes the name of a kernel. `regex`: as a regular expression, else as a part of the name."""

    option: str
    value: str
    regex: bool
    source: str


FILTERS: Tuple[FilterRow, ...] = (
    FilterRow("--kernel-name", "regex={kernel}", True, f"{_HELP}: since 2023.3"),
    FilterRow("--kernel-regex", "kernel_substring={kernel}", False, f"{_NOTES} 2021.2; it takes no expression, either"),
    FilterRow("--filter", "kernel_substring={kernel}", False, f"{_HELP}: until 2022"),
)
"""The first that the tool has."""

VERSION = r"Version (\d{4})\.(\d{1,3})(?:\.\d{1,6}){0,3}"
IN_HELP = r"(?m)^\s{1,8}(?:-\w \[ )?(--[a-z][a-z0-9-]{1,60})\b"

FOLDERS: Tuple[str, ...] = (
    "{CUDA_HOME}/bin",
    "{CUDA_PATH}/bin",
    "/usr/local/cuda/bin",
    "/usr/local/cuda/compute-sanitizer",
    "/opt/cuda/bin",
)
"""Where it is, when it is not on PATH."""

IN_PACKAGES: Tuple[str, ...] = (
    "nvidia/cu13/compute-sanitizer",
    "nvidia/cu13/bin",
    "nvidia/cuda_sanitizer_api/bin",
)
"""Where it is below Python's site-packages."""

PACKAGES = (
    "pip install 'nvidia-cuda-sanitizer-api>=13.4.92' has it, so have NVIDIA's packages cuda-sanitizer-13-0 and "
    "Debian's nvidia-cuda-toolkit (non-free, of Debian 13)"
)

LIBRARY = "libsanitizer-collection.so"
LIBRARY_FOLDERS: Tuple[str, ...] = (
    ".",
    "../lib",
    "../compute-sanitizer",
    "../lib/nvidia-cuda-toolkit/compute-sanitizer",
)
"""Where its libraries are, seen from the program; where not beside it, it is told by --injection-path."""
STARTER = "TreeLauncherSubreaper"
"""A program beside the libraries that starts ours. nvidia-cuda-sanitizer-api-cu12 12.9.79, nvidia-cuda-sanitizer-api
13.0.85 to 13.4.57 and Debian 11's and 12's packages lack it there: nothing is started then, and all that is said is
"Target application terminated before first instrumented API call" (tried with each)."""

DRIVER_LIBRARY = "libcuda.so.1"
"""Without it each process crashes in the sanitizer's library before `main` (2022.3 to 2026.4, tried)."""

DRIVERS: Tuple[Tuple[Tuple[int, int], int, str], ...] = (
    ((2025, 3), 580, "CUDA 13"),
    ((2022, 4), 525, "CUDA 12"),
    ((2020, 1), 450, "CUDA 11"),
)
"""From which release on -> the oldest driver for the CUDA it came with (CUDA release notes, minor version
compatibility)."""
DRIVER_VERSION = r"Kernel Module(?: for \S+)?\s+(\d{3})\.\d+"

OTHER_TOOLS: Mapping[str, str] = {
    "CUDA_INJECTION64_PATH": "another tool of CUDA is loaded into the program (nsys, ncu, a profiler of CUPTI)",
    "NVTX_INJECTION64_PATH": "another tool takes the program's NVTX marks",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "the sanitizer switches GPU core dumps off; it has --generate-coredump",
    "CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "the sanitizer switches GPU core dumps off; it has --generate-coredump",
    "CUDBG_USE_LEGACY_DEBUGGER": "cuda-gdb was here: one tool at a time can watch a GPU",
}
"""Variables of tools that do not go with it (Compute Sanitizer manual; cuda-gdb manual)."""


class LauncherRow(NamedTuple):
    """A launcher: how its command line goes on to the program, and the variable that has the rank in what it starts.

    `pairs`, `triples`: options whose value, or two, are words of their own; `flags`: those without one. `short`:
    letters of options whose value may stand behind the letter. `rank_of`: what `--version` prints -> the variable.
    """

    names: Tuple[str, ...]
    flags: str
    pairs: str
    source: str
    triples: str = ""
    short: str = ""
    rank: str = ""
    rank_of: Tuple[Tuple[str, str], ...] = ()
    python: bool = False  # what it starts is a script or module of Python


LAUNCHERS: Tuple[LauncherRow, ...] = (
    LauncherRow(
        names=("mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "mpirun.openmpi", "mpirun.mpich"),
        flags="""--allow-run-as-root --oversubscribe --bynode --byslot --bind-to-core --bind-to-none --tag-output
            --report-bindings --display-map --display-allocation --nooversubscribe --merge-stderr-to-stdout --quiet
            --verbose --timestamp-output -l -q -v -nolocal -prepend-rank --enable-recovery --continuous --nw""",
        pairs="""-n -np -c --n --np -N --npernode --npersocket --map-by --bind-to --rank-by -H -host --host -hosts
            --hosts --hostfile -hostfile -machinefile --machinefile -f -x --wdir -wdir --wd -path --path --prefix
            --output-filename --timeout --ppr -ppn -perhost -iface -launcher -bootstrap -map-by -bind-to -genvlist
            -envlist --output --personality --runtime-options --display --cpus-per-proc --cpus-per-rank --report-pid
            --tune --am -outfile-pattern -errfile-pattern --stdin -usize -rr""",
        triples="--mca -mca --gmca --prtemca --pmixmca -genv -env --omca",
        source="Open MPI 4 and 5 mpirun(1), MPICH 4 and Intel MPI mpiexec.hydra -help",
        rank_of=(
            (r"Open ?MPI|open-mpi|OpenRTE|\(PRRTE\)|\bPRTE\b", "OMPI_COMM_WORLD_RANK"),
            (r"MVAPICH", "MV2_COMM_WORLD_RANK"),
            (r"HYDRA|Intel\(R\) MPI|MPICH", "PMI_RANK"),
        ),
    ),
    LauncherRow(
        names=("srun",),
        flags="""-l --label -u --unbuffered -K --exclusive --overlap --oversubscribe -O --overcommit --pty -Q -v
            --preserve-env -E --contiguous --no-kill -k --disable-status -X --multi-prog --verbose --quiet""",
        pairs="""-n --ntasks -N --nodes -p --partition -t --time -w --nodelist -x --exclude -J --job-name -o --output
            -e --error -i --input -c --cpus-per-task -G --gpus -A --account -q --qos -C --constraint -D --chdir
            --gres --mem --mpi --export --ntasks-per-node --gpus-per-node --gpus-per-task --cpu-bind --gpu-bind
            --container-image --container-mounts --container-name --container-workdir --jobid -r --relative -m
            --distribution -W --wait --kill-on-bad-exit --reservation --mem-per-gpu --mem-per-cpu --het-group""",
        short="nNptwxJoeicGAqCDrmW",
        source="Slurm 23 srun(1)",
        rank="SLURM_PROCID",
    ),
    LauncherRow(
        names=("torchrun", "torch.distributed.run", "torch.distributed.launch"),
        flags="--standalone -m --module --no-python --no_python --virtual-local-rank --use-env --use_env",
        pairs="""--nnodes --nproc-per-node --nproc_per_node --rdzv-backend --rdzv_backend --rdzv-endpoint
            --rdzv_endpoint --rdzv-id --rdzv_id --rdzv-conf --rdzv_conf --max-restarts --max_restarts
            --monitor-interval --monitor_interval --start-method --start_method --role --log-dir --log_dir -r
            --redirects -t --tee --local-ranks-filter --local_ranks_filter --node-rank --node_rank --master-addr
            --master_addr --master-port --master_port --local-addr --local_addr --logs-specs --logs_specs
            --event-log-handler --numa-binding --signals-to-handle""",
        short="rt",
        source="torch 2.13 torch/distributed/run.py get_args_parser",
        rank="RANK",
        python=True,
    ),
)
"""An option that no row has could take a word that looks like the program: the place is then asked for."""

IN_EACH_RANK = "start each rank by gdbext: mpirun -n 8 gdbext run --sanitizer -- ./server"
